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

from streamer.bloblang.runtime.regex import compile_re2
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.input.scanning import (
    BLOCK_BYTES,
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
    skip_bytes,
)
from streamer.sdk.regex_field import pattern_problem
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec

PATTERN: Final = "pattern"
MAX_BUFFER_SIZE: Final = "max_buffer_size"


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
            check=pattern_problem,
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

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        skip_bytes(source.stream, since.position)
        position, number = since.position, since.number
        buffer, ended = b"", False
        while not ended:
            block = source.stream.read(BLOCK_BYTES)
            ended = not block
            buffer, at = buffer + block, 0
            raws: list[bytes] = []
            while size := self._segment_length(buffer[at : at + self.max_buffer_size], ended):
                raws.append(buffer[at : at + size])
                at += size
                if len(raws) == max_messages:
                    position, number = position + sum(map(len, raws)), number + max_messages
                    yield ScannedCut(RawMessages(raws, source.meta), ScanMark(position, number))
                    raws = []
            if raws:
                position, number = position + sum(map(len, raws)), number + len(raws)
                yield ScannedCut(RawMessages(raws, source.meta), ScanMark(position, number))
            buffer = buffer[at:]
            if len(buffer) >= self.max_buffer_size:
                raise ScanError(
                    f"{source.name}: a segment at byte {position} has {self.max_buffer_size} bytes "
                    "or more; raise max_buffer_size (bufio.Scanner: token too long)"
                )

    def _segment_length(self, window: bytes, ended: bool) -> int:
        """Return the length of the segment that a window begins with; 0 when more is needed."""
        ended = ended and len(window) < self.max_buffer_size
        matches = islice(compile_re2(self.pattern).finditer(window), 2)
        starts: list[int] = [match.start() for match in matches]
        if len(starts) == 2:
            return starts[0] or starts[1]
        if not ended:
            return 0
        return starts[0] if starts and starts[0] else len(window)


def build(parsed: ParsedFields, context: BuildContext) -> ReMatchScanner:
    """Take the fields."""
    return ReMatchScanner(parsed[PATTERN], parsed[MAX_BUFFER_SIZE])
