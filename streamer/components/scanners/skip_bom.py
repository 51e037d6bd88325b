"""`skip_bom`: takes a byte order mark off the beginning, and lets another scanner cut the rest.

It will "skip one or more byte order marks for each opened child scanner"; the one that there is,
that is: as in Benthos, one at the beginning of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ByteStream,
    PrefixedStream,
    ScanInput,
    ScanMark,
    ScannedCut,
    Scanner,
    expansion_of,
)
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

INTO: Final = "into"

# UTF-32 of both orders, UTF-8, UTF-16 of both orders: longer ones first, for they begin alike.
_BYTE_ORDER_MARKS: Final = (
    b"\0\0\xfe\xff",
    b"\xff\xfe\0\0",
    b"\xef\xbb\xbf",
    b"\xfe\xff",
    b"\xff\xfe",
)

SPEC: Final = Spec(
    Kind.SCANNER,
    "skip_bom",
    "Leaves out a byte order mark, and lets another scanner cut what follows.",
    fields=(
        Field(INTO, "scanner", "Scanner for the rest of the stream.", default={"to_the_end": {}}),
    ),
)


def strip_byte_order_mark(stream: ByteStream) -> ByteStream:
    """Return a stream without the byte order mark that it may begin with."""
    begin = b""
    while len(begin) < 4 and (more := stream.read(4 - len(begin))):
        begin += more
    mark = next((mark for mark in _BYTE_ORDER_MARKS if begin.startswith(mark)), b"")
    return PrefixedStream(begin[len(mark) :], stream)


@dataclass(frozen=True, slots=True)
class SkipBomScanner:
    """Hands on what follows the mark.

    Attributes:
        into: cuts it.
    """

    into: Scanner

    @property
    def expansion(self) -> int:
        """About how many bytes the inner scanner makes of one."""
        return expansion_of(self.into)

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        return self.into.scan_stream(
            source.with_stream(strip_byte_order_mark(source.stream)), since, max_messages
        )


def build(parsed: ParsedFields, context: BuildContext) -> SkipBomScanner:
    """Build the inner scanner."""
    return SkipBomScanner(context.build(parsed[INTO]))
