"""`to_the_end`: a message of all that there is.

It will "read the input stream all the way until the end and deliver it as a single message". So it
is for streams that have an end, and that fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.source.replayable import Raws
from streamer.source.scanning import BLOCK, MOST, START, Cut, Mark, Opened
from streamer.spec import BuildContext, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.SCANNER,
    "to_the_end",
    "Makes one message of the whole stream.",
    description=(
        "The stream has to end, and to fit into a worker's memory. A source without an end, such "
        "as a socket, gives nothing until it is closed."
    ),
    config=Field("", "object", "It has no fields.", default={}),
    limits="the stream has to fit into a worker's memory",
)


@dataclass(frozen=True, slots=True)
class ToTheEndScanner:
    """Gives the stream as it is; one without any bytes is an empty message."""

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`."""
        if since.number:
            return
        blocks = []
        while block := source.stream.read(BLOCK):
            blocks.append(block)
        raw = b"".join(blocks)
        yield Cut(Raws([raw], source.meta), Mark(len(raw), 1))


def build(parsed: object, context: BuildContext) -> ToTheEndScanner:
    """There is nothing to take."""
    return ToTheEndScanner()
