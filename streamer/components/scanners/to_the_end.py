"""`to_the_end`: a message of all that there is.

It will "read the input stream all the way until the end and deliver it as a single message". So it
is for streams that have an end, and that fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from streamer.core.limits import MAX_BYTES
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.input.scanning import (
    BLOCK_BYTES,
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
)
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

MAX_SIZE: Final = "max_size"

SPEC: Final = Spec(
    Kind.SCANNER,
    "to_the_end",
    "Makes one message of the whole stream.",
    description=(
        "The stream has to end, and to fit into a worker's memory. A source without an end, such "
        "as a socket, gives nothing until it is closed."
    ),
    fields=(
        Field(
            MAX_SIZE,
            "int",
            "Maximum size of the stream in bytes. A longer stream is an error and is "
            "discarded, because a sender could otherwise fill the memory. Not in Benthos.",
            default=MAX_BYTES,
            check=lambda size: None if size > 0 else f"is {size}; expected 1 or more",
            advanced=True,
        ),
    ),
    limits="the stream has to fit into a worker's memory",
)


@dataclass(frozen=True, slots=True)
class ToTheEndScanner:
    """Gives the stream as it is; one without any bytes is an empty message.

    Attributes:
        max_size: bytes that it may have.
        takes_whole: see `is_whole_reader`.
    """

    max_size: int = MAX_BYTES
    takes_whole: ClassVar[bool] = True

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        if since.number:
            return
        blocks, size = [], 0
        while block := source.stream.read(BLOCK_BYTES):
            size += len(block)
            if size > self.max_size:
                raise ScanError(
                    f"the stream has more than the {self.max_size} bytes that it may have, see "
                    "max_size of the scanner to_the_end"
                )
            blocks.append(block)
        raw = b"".join(blocks)
        yield ScannedCut(RawMessages([raw], source.meta), ScanMark(len(raw), 1))


def build(parsed: ParsedFields, context: BuildContext) -> ToTheEndScanner:
    """Take the size."""
    return ToTheEndScanner(parsed.get(MAX_SIZE, MAX_BYTES))
