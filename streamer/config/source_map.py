"""A config's text, and the way back from the text that YAML sees to the one the user wrote."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final

from streamer.sdk.spec import NO_PLACE, Place

LINE_END: Final = re.compile(r"\r\n|\r|\n")

_MARK_START: Final = "\ufdd2"
"""The beginning of a secret's mark: a character that Unicode keeps from being used in texts."""

_MARK: Final = re.compile("\ufdd2([0-9]+)\ufdd3")

Shift = list[tuple[int, int, bool]]
"""Pieces of a changed text: where each starts there, where in the text before the change, and
whether it was copied (an offset inside it maps one to one) or put in (all of it maps to the
start of what was replaced)."""


class Source:
    """One text with a name: a file, or the value of a `--set`.

    Attributes:
        name: how findings name it.
        text: the text as it is after all replacements, which offsets count in (characters).
        lenient: a single value is taken where a list is expected (as `--set` does in Benthos).
    """

    def __init__(self, name: str, text: str, lenient: bool = False) -> None:
        self.name = name
        self.text = text
        self.lenient = lenient
        self._shifts: list[Shift] = []
        self._secrets: list[str] = []
        self._lines = [0, *(match.end() for match in LINE_END.finditer(text))]

    def replace(self, pieces: Iterable[tuple[int, int, str]]) -> None:
        """Put other texts in, in order, remembering where everything came from.

        Args:
            pieces: from which offset, to which one (excluded), and what comes there instead.
        """
        parts: list[str] = []
        shift: Shift = []
        length = done = 0
        for start, end, instead in pieces:
            for text, before, copied in (
                (self.text[done:start], done, True),
                (instead, start, False),
            ):
                shift.append((length, before, copied))
                parts.append(text)
                length += len(text)
            done = end
        if parts:
            shift.append((length, done, True))
            self._shifts.append(shift)
            self.text = "".join(parts) + self.text[done:]

    def add_secret(self, value: str) -> str:
        """Return the mark that stands for a secret until the YAML was read."""
        self._secrets.append(value)
        return f"\ufdd2{len(self._secrets) - 1}\ufdd3"

    def has_secret(self, text: str) -> bool:
        """Return whether a text of this source has marks."""
        return bool(self._secrets) and _MARK_START in text

    def reveal(self, text: str, write: Callable[[str, str], str] | None = None) -> str:
        """Return a text with the secrets in the place of their marks.

        Args:
            text: of this source.
            write: gets what stands before a mark, and the secret; returns its spelling there.
        """

        def put_in(match: re.Match[str]) -> str:
            number = int(match[1])
            if number >= len(self._secrets):
                return match[0]
            value = self._secrets[number]
            return value if write is None else write(text[: match.start()], value)

        return _MARK.sub(put_in, text)

    def locate(self, offset: int) -> Place:
        """Return line and column, in the text before all replacements, of an offset."""
        for shift in reversed(self._shifts):
            here, before, copied = shift[bisect_right(shift, offset, key=lambda p: p[0]) - 1]
            offset = before + (offset - here if copied else 0)
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1)


class _NoSource(Source):
    """The source of values that nobody wrote."""

    def locate(self, offset: int) -> Place:
        return NO_PLACE


NO_SOURCE: Final = _NoSource("", "")
"""Where the defaults of fields stand."""
