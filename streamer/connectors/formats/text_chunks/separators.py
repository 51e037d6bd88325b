"""Texts cut at separators, and joined again up to a size: LangChain's recursive splitter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

Length = Callable[[str], int]
"""Measures a text."""

_SPACES: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Characters that a chunk does not begin or end with: Unicode's White_Space."""


class SeparatorSplitter:
    """Cuts a text at the first separator that it has, and what is too long at those behind."""

    def __init__(self, size: int, overlap: int, separators: Sequence[str], length: Length) -> None:
        """Take the settings.

        Args:
            size: of a chunk at most, by `length`; a piece without a separator may be longer.
            overlap: how much of the end of a chunk the next one begins with, at most.
            separators: the most important first; an empty one cuts between characters.
            length: measures a text.
        """
        self._size = size
        self._overlap = overlap
        self._separators = list(separators)
        self._length = length

    def split(self, text: str) -> list[str]:
        """Return the chunks of a text.

        >>> SeparatorSplitter(9, 0, [" "], len).split("How? Are? You?")
        ['How? Are?', 'You?']
        """
        return self._split(text, self._separators)

    def _split(self, text: str, separators: list[str]) -> list[str]:
        place = next(
            (n for n, separator in enumerate(separators) if separator in text), len(separators) - 1
        )
        separator, finer = separators[place], separators[place + 1 :]
        chunks: list[str] = []
        short: list[str] = []
        for piece in text.split(separator) if separator else list(text):
            if self._length(piece) < self._size:
                short.append(piece)
                continue
            chunks += self._join(short, separator)
            short = []
            chunks += self._split(piece, finer) if finer else [piece]
        return chunks + self._join(short, separator)

    def _join(self, pieces: list[str], separator: str) -> list[str]:
        """Return pieces joined up to the size; each chunk begins with the end of the one before."""
        gap = self._length(separator)
        chunks: list[str] = []
        current: deque[tuple[str, int]] = deque()
        total = 0
        for piece in pieces:
            size = self._length(piece)
            if current and total + size + gap > self._size:
                chunks.append(separator.join(text for text, _ in current))
                while current and self._is_too_much(total, size, gap if len(current) > 1 else 0):
                    _, dropped = current.popleft()
                    total -= dropped + (gap if current else 0)
            total += size + (gap if current else 0)
            current.append((piece, size))
        chunks.append(separator.join(text for text, _ in current))
        return [chunk for chunk in (text.strip(_SPACES) for text in chunks) if chunk]

    def _is_too_much(self, total: int, size: int, gap: int) -> bool:
        """Whether less of a chunk must be repeated before a piece of a size."""
        return total > self._overlap or (total + size + gap > self._size and total > 0)
