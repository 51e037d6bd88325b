"""`to_the_end`: a message of all that there is.

It will "read the input stream all the way until the end and deliver it as a single message". So it
is for streams that have an end, and that fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.limits import MOST_BYTES
from streamer.source.replayable import Raws
from streamer.source.scanning import BLOCK, MOST, START, Cut, Mark, Opened, ScanError
from streamer.spec import BuildContext, Field, Kind, Parsed, Spec

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
            "How many bytes the stream may have. A longer one is an error, and nothing of it is "
            "kept: whoever may send could fill the memory. Ours, not in Benthos.",
            default=MOST_BYTES,
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
    """

    max_size: int = MOST_BYTES

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`."""
        if since.number:
            return
        blocks, size = [], 0
        while block := source.stream.read(BLOCK):
            size += len(block)
            if size > self.max_size:
                raise ScanError(
                    f"the stream has more than the {self.max_size} bytes that it may have, see "
                    "max_size of the scanner to_the_end"
                )
            blocks.append(block)
        raw = b"".join(blocks)
        yield Cut(Raws([raw], source.meta), Mark(len(raw), 1))


def build(parsed: Parsed, context: BuildContext) -> ToTheEndScanner:
    """Take the size."""
    return ToTheEndScanner(parsed.get(MAX_SIZE, MOST_BYTES))
