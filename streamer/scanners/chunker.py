"""`chunker`: a message of every so many bytes.

It will "split an input stream into chunks of a given number of bytes"; the last one may be shorter.
Where the bytes can be read again, a large file is cut into ranges that several workers read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.source.replayable import Raws
from streamer.source.scanning import BLOCK, MOST, START, Cut, Mark, Opened, skip
from streamer.spec import BuildContext, Field, Kind, Parsed, Spec

SIZE: Final = "size"


def _positive(size: int) -> str | None:
    # Benthos takes 0 and never gives a message; below that it breaks down.
    return None if size > 0 else f"is {size}; expected a number of bytes above 0"


SPEC: Final = Spec(
    Kind.SCANNER,
    "chunker",
    "Makes a message of every so many bytes.",
    fields=(Field(SIZE, "int", "The bytes of a message.", check=_positive, examples=(4096,)),),
)


@dataclass(frozen=True, slots=True)
class ChunkerScanner:
    """Cuts at multiples of a size.

    Attributes:
        size: bytes of a message.
    """

    size: int

    def place(self, number: int) -> Mark:
        """Return the mark before a message; see `Placing`."""
        return Mark(number * self.size, number)

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`."""
        skip(source.stream, since.position)
        size, number, held = self.size, since.number, b""
        most = max(1, min(most, BLOCK // size))
        while block := source.stream.read(max(BLOCK, size - len(held))):
            held += block
            whole = len(held) // size
            for first in range(0, whole, most):
                last = min(first + most, whole)
                raws = [held[at : at + size] for at in range(first * size, last * size, size)]
                number += len(raws)
                yield Cut(Raws(raws, source.meta), self.place(number))
            held = held[whole * size :]
        if held:
            end = Mark(number * size + len(held), number + 1)
            yield Cut(Raws([held], source.meta), end)


def build(parsed: Parsed, context: BuildContext) -> ChunkerScanner:
    """Take the size."""
    return ChunkerScanner(parsed[SIZE])
