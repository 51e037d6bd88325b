"""`chunker`: a message of every so many bytes.

It will "split an input stream into chunks of a given number of bytes"; the last one may be shorter.
Where the bytes can be read again, a large file is cut into ranges that several workers read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.input.scanning import (
    BLOCK_BYTES,
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanInput,
    ScanMark,
    ScannedCut,
    skip_bytes,
)
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

SIZE: Final = "size"


def _positive_problem(size: int) -> str | None:
    # Benthos takes 0 and never gives a message; below that it breaks down.
    return None if size > 0 else f"is {size}; expected a number of bytes above 0"


SPEC: Final = Spec(
    Kind.SCANNER,
    "chunker",
    "Makes a message of every so many bytes.",
    fields=(
        Field(SIZE, "int", "The bytes of a message.", check=_positive_problem, examples=(4096,)),
    ),
)


@dataclass(frozen=True, slots=True)
class ChunkerScanner:
    """Cuts at multiples of a size.

    Attributes:
        size: bytes of a message.
    """

    size: int

    def mark_of(self, number: int) -> ScanMark:
        """Return the mark before a message; see `FixedSizeScanner`."""
        return ScanMark(number * self.size, number)

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        skip_bytes(source.stream, since.position)
        size, number, buffer = self.size, since.number, b""
        max_messages = max(1, min(max_messages, BLOCK_BYTES // size))
        while block := source.stream.read(max(BLOCK_BYTES, size - len(buffer))):
            buffer += block
            whole = len(buffer) // size
            for first in range(0, whole, max_messages):
                last = min(first + max_messages, whole)
                raws = [buffer[at : at + size] for at in range(first * size, last * size, size)]
                number += len(raws)
                yield ScannedCut(RawMessages(raws, source.meta), self.mark_of(number))
            buffer = buffer[whole * size :]
        if buffer:
            end = ScanMark(number * size + len(buffer), number + 1)
            yield ScannedCut(RawMessages([buffer], source.meta), end)


def build(parsed: ParsedFields, context: BuildContext) -> ChunkerScanner:
    """Take the size."""
    return ChunkerScanner(parsed[SIZE])
