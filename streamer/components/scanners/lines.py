r"""`lines`: a message per line.

"Split an input stream into a message per line of data." The rules are those of Go's `bufio`
scanner, which Benthos uses: a line ends at `\n`, one `\r` before it is taken off, and the last
line may lack its end. With `custom_delimiter` nothing is taken off. A line that does not fit into
`max_buffer_size` together with its end makes Benthos give up the rest of the file; here that line
alone is left out, counted in `input_dropped{reason="too_long"}`, and logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from streamer.connectors.files.line_files import is_self_overlapping
from streamer.core.execution import Execution
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.input.scanning import (
    BLOCK_BYTES,
    MAX_CUT_MESSAGES,
    START_MARK,
    ByteStream,
    ScanInput,
    ScanMark,
    ScannedCut,
    skip_bytes,
)
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

if TYPE_CHECKING:
    from streamer.core.json.columns.line_block import LineRange

CUSTOM_DELIMITER: Final = "custom_delimiter"
MAX_BUFFER_SIZE: Final = "max_buffer_size"
OMIT_EMPTY: Final = "omit_empty"

DROPPED_COUNTER: Final = "input_dropped"
TOO_LONG: Final = "too_long"


def _positive_problem(value: int) -> str | None:
    if value > 0:
        return None
    return f"is {value}; expected a number of bytes above 0"


SPEC: Final = Spec(
    Kind.SCANNER,
    "lines",
    "Makes a message of each line.",
    fields=(
        Field(
            CUSTOM_DELIMITER,
            "string",
            "End of a line, instead of a line break.",
            optional=True,
        ),
        Field(
            MAX_BUFFER_SIZE,
            "int",
            "The most bytes that a line may have, its end included. A longer line is left out, "
            "counted and logged.",
            default=65_536,
            check=_positive_problem,
        ),
        Field(OMIT_EMPTY, "bool", "Leave out empty lines.", default=False),
    ),
)


class SplitLines(NamedTuple):
    """The lines of a range of bytes.

    Attributes:
        lines: the lines, without their ends.
        too_long: the lengths in bytes of those that were left out.
    """

    lines: list[bytes]
    too_long: list[int]


@dataclass(frozen=True, slots=True)
class LineScanner:
    """Splits ranges of bytes that end at a delimiter or at the end of the file.

    Attributes:
        delimiter: what ends a line.
        strip_return: whether one carriage return before the end is taken off.
        max_buffer_size: the longest line, its end included.
        omit_empty: whether empty lines are left out.
    """

    delimiter: bytes = b"\n"
    strip_return: bool = True
    max_buffer_size: int = 65_536
    omit_empty: bool = False

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        skip_bytes(source.stream, since.position)
        position, number = since.position, since.number
        for whole in self._whole_blocks(source.stream):
            for part in self._split_block(whole, max_messages):
                lines = self.scan_range(part, source.ex, source.name)
                position, number = position + len(part), number + len(lines)
                if lines:
                    yield ScannedCut(RawMessages(lines, source.meta), ScanMark(position, number))

    def _whole_blocks(self, stream: ByteStream) -> Iterator[bytes]:
        """Read a stream as blocks that end with a delimiter, or with the stream."""
        delimiter = self.delimiter
        width, overlaps = len(delimiter), is_self_overlapping(delimiter)
        parts: list[bytes] = []
        edge = b""
        while block := stream.read(BLOCK_BYTES):
            parts.append(block)
            # A long line is not joined anew, nor searched again, for every block of it.
            edge += block
            if delimiter in edge:
                data = b"".join(parts)
                # Where delimiters may overlap, those count that are found from the left.
                rest = (
                    data.split(delimiter)[-1] if overlaps else data[data.rfind(delimiter) + width :]
                )
                yield data[: len(data) - len(rest)]
                parts, edge = [rest] if rest else [], rest
            edge = edge[len(edge) - width + 1 :] if width > 1 else b""
        if parts:
            yield b"".join(parts)

    def _split_block(self, data: bytes, max_messages: int) -> Iterator[bytes]:
        """Cut whole lines into parts that have at most so many."""
        while data:
            rest = data.split(self.delimiter, max_messages)
            size = len(data) - len(rest[-1]) if len(rest) > max_messages else len(data)
            yield data[:size]
            data = data[size:]

    def scan_range(self, data: bytes, ex: Execution, source: str = "") -> list[bytes]:
        """Split a range; log and count the lines that are too long.

        Args:
            data: the bytes, from the start of a line on.
            ex: the run.
            source: the file's name, for the log.
        """
        lines, too_long = self.split(data)
        if too_long:
            ex.count(DROPPED_COUNTER, len(too_long), reason=TOO_LONG)
        for length in too_long:
            fields = {"source": source, "bytes": length, "limit": self.max_buffer_size}
            text = "Left out a line that is longer than max_buffer_size; raise it to take the line"
            ex.log("WARN", text, fields)
        return lines

    def find_lines(self, data: bytes) -> LineRange | None:
        """Return the lines of a range, where they are just what is between newlines."""
        # Imported here: the command line need not wait for numpy.
        from streamer.core.json.columns.line_block import LineRange

        if self.delimiter != b"\n" or (self.strip_return and b"\r" in data):
            return None
        lines = LineRange.of_data(data)
        if lines is None or lines.block.max_length + 2 > self.max_buffer_size:
            return None
        return None if self.omit_empty and not lines.lengths.all() else lines

    def split(self, data: bytes) -> SplitLines:
        """Split a range into lines, without those that are too long."""
        too_long: list[int] = []
        if len(data) >= self.max_buffer_size and self._has_too_long(data):
            data, too_long = self._without_long(data)
        delimiter, bare_return = self.delimiter, False
        if self.strip_return and b"\r" in data:
            bare_return = data.endswith(b"\r")
            data = data[:-1] if bare_return else data
            if data.count(b"\r\n") == data.count(b"\n"):
                delimiter = b"\r\n"
            else:
                data = data.replace(b"\r\n", b"\n")
        lines = data.split(delimiter)
        # After the last delimiter there is no line, unless a lone return stood there.
        if not lines[-1] and not bare_return:
            lines.pop()
        return SplitLines([line for line in lines if line] if self.omit_empty else lines, too_long)

    def _has_too_long(self, data: bytes) -> bool:
        """Hop from line start to line start, as far as the limit goes: a few steps a megabyte."""
        if len(self.delimiter) > 1:
            return True  # Delimiters may overlap, so hopping backwards could find a wrong one.
        size = self.max_buffer_size
        start = 0
        while len(data) - start >= size:
            end = data.rfind(self.delimiter, start, start + size)
            if end < 0:
                return True
            start = end + 1
        return False

    def _without_long(self, data: bytes) -> tuple[bytes, list[int]]:
        pieces = data.split(self.delimiter)
        ended = len(self.delimiter)
        last = pieces.pop()
        kept, too_long = _partition_by_length(pieces, self.max_buffer_size - ended)
        # Go's scanner cannot tell that a buffer full to the brim was the end of the file.
        tail, tail_too_long = _partition_by_length([last], self.max_buffer_size - 1)
        kept.append(tail[0] if tail else b"")
        return self.delimiter.join(kept), too_long + tail_too_long


def _partition_by_length(lines: Iterable[bytes], limit: int) -> tuple[list[bytes], list[int]]:
    kept: list[bytes] = []
    too_long: list[int] = []
    for line in lines:
        if len(line) <= limit:
            kept.append(line)
        else:
            too_long.append(len(line))
    return kept, too_long


def build(parsed: ParsedFields, context: BuildContext) -> LineScanner:
    """Take the fields; an empty delimiter is a line break."""
    custom = parsed[CUSTOM_DELIMITER]
    return LineScanner(
        delimiter=custom.encode() if custom else b"\n",
        strip_return=not custom,
        max_buffer_size=parsed[MAX_BUFFER_SIZE],
        omit_empty=parsed[OMIT_EMPTY],
    )
