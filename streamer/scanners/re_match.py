"""`re_match`: a message from each match of a pattern to the next.

It will "split an input stream into segments matching against a regular expression". As in Benthos a
segment begins with a match and ends where the next one begins; what stands before the first match
is a message as well. A segment's beginning is that of the text for an anchor such as `^`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.runtime.matching import searching
from streamer.source.replayable import Raws
from streamer.source.scanning import BLOCK, MOST, START, Cut, Mark, Opened, ScanError, skip
from streamer.spec import Access, BuildContext, Field, Kind, Parsed, Spec

PATTERN: Final = "pattern"
MAX_BUFFER_SIZE: Final = "max_buffer_size"


def _pattern(text: str) -> str | None:
    try:
        searching(text)
    except ArgumentError as error:
        return str(error)
    return None


SPEC: Final = Spec(
    Kind.SCANNER,
    "re_match",
    "Makes a message from each match of a regular expression to the next.",
    description=(
        "A segment that does not fit into `max_buffer_size` is an error, and what is left of the "
        "stream is lost with it."
    ),
    fields=(
        Field(
            PATTERN,
            "string",
            "The regular expression (RE2) that segments begin with.",
            access=Access.NONE,
            check=_pattern,
            examples=(r"(?m)^\d\d:\d\d:\d\d",),
        ),
        Field(
            MAX_BUFFER_SIZE,
            "int",
            "The bytes that are searched for the end of a segment.",
            default=65_536,
            check=lambda size: None if size > 0 else f"is {size}; expected bytes above 0",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ReMatchScanner:
    """Cuts before matches.

    Attributes:
        pattern: of RE2.
        max_buffer_size: a segment has fewer bytes.
    """

    pattern: str
    max_buffer_size: int = 65_536

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`."""
        skip(source.stream, since.position)
        position, number = since.position, since.number
        held, ended = b"", False
        while not ended:
            block = source.stream.read(BLOCK)
            ended = not block
            held, at = held + block, 0
            raws: list[bytes] = []
            while size := self._segment(held[at : at + self.max_buffer_size], ended):
                raws.append(held[at : at + size])
                at += size
                if len(raws) == most:
                    position, number = position + sum(map(len, raws)), number + most
                    yield Cut(Raws(raws, source.meta), Mark(position, number))
                    raws = []
            if raws:
                position, number = position + sum(map(len, raws)), number + len(raws)
                yield Cut(Raws(raws, source.meta), Mark(position, number))
            held = held[at:]
            if len(held) >= self.max_buffer_size:
                raise ScanError(
                    f"{source.name}: a segment at byte {position} has {self.max_buffer_size} bytes "
                    "or more; raise max_buffer_size (bufio.Scanner: token too long)"
                )

    def _segment(self, window: bytes, ended: bool) -> int:
        """Return the length of the segment that a window begins with; 0 when more is needed."""
        ended = ended and len(window) < self.max_buffer_size
        matches = islice(searching(self.pattern).finditer(window), 2)
        starts: list[int] = [found.start() for found in matches]
        if len(starts) == 2:
            return starts[0] or starts[1]
        if not ended:
            return 0
        return starts[0] if starts and starts[0] else len(window)


def build(parsed: Parsed, context: BuildContext) -> ReMatchScanner:
    """Take the fields."""
    return ReMatchScanner(parsed[PATTERN], parsed[MAX_BUFFER_SIZE])
