"""The rows of a CSV stream, many at a time, as Go's `encoding/csv` reads them.

Where a block has no quotes its rows are split at once; a row with quotes is read letter by letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from streamer.bloblang.golib.gocsv import CsvError, CsvReader
from streamer.sdk.input.scanning import BLOCK_BYTES, ByteStream


class Rows(NamedTuple):
    """Rows that have been read.

    Attributes:
        records: the fields of each; of a faulty one those that could be read.
        faults: what is wrong with a row, by its place in `records`.
    """

    records: list[list[str]]
    faults: Mapping[int, str]


class CsvRows(CsvReader):
    """A stream of CSV.

    Attributes:
        position: the place in the stream behind the rows that were given.
        width: the number of fields that rows must have; 0 before the first.
    """

    def __init__(
        self,
        stream: ByteStream,
        delimiter: bytes,
        lazy: bool,
        begin: tuple[int, int, int] = (0, 0, 0),
    ) -> None:
        """Begin at a place up to which the stream has been read.

        Args:
            stream: the stream.
            delimiter: one letter.
            lazy: whether a quote may stand in a field that is not quoted, and alone in one that is.
            begin: position, width and line there.
        """
        super().__init__(delimiter, lazy)
        self._stream = stream
        self.position, self.width, self.line = begin
        self._data = b""
        self._at = 0
        self._is_ended = False

    def read_rows(self, max_rows: int) -> Iterator[Rows]:
        """Return the rows, at most so many at a time; those that are there before more is read."""
        while (end := self._read_lines()) > self._at:
            plain = b'"' not in self._data[self._at : end]
            yield from (
                self._plain_rows(end, max_rows) if plain else self._quoted_rows(end, max_rows)
            )

    def _read_lines(self) -> int:
        """Read on until there is a whole line; return the end of the last that there is."""
        while True:
            end = self._data.rfind(b"\n", self._at) + 1
            if end or self._is_ended:
                return end if end and not self._is_ended else len(self._data)
            self._read_more()

    def _read_more(self) -> None:
        parts = [self._data[self._at :]]
        self._at, size = 0, 0
        while not self._is_ended and size <= len(parts[0]):
            block = self._stream.read(BLOCK_BYTES)
            parts.append(block)
            self._is_ended = not block
            size += len(block)
            if b"\n" in block:
                break
        self._data = b"".join(parts)

    def _plain_rows(self, end: int, max_rows: int) -> Iterator[Rows]:
        delimiter = self.delimiter.decode()
        while self._at < end:
            lines = self._data[self._at : end].split(b"\n", max_rows)
            rest = len(lines.pop()) if len(lines) > max_rows or not lines[-1] else 0
            size = end - self._at - rest
            first = self.line
            self.line += len(lines)
            text = b"\n".join(lines).decode("utf-8", "surrogateescape")
            # Only a line break ends a line here: other letters that Python takes for one do not.
            shown = [line.removesuffix("\r") if "\r" in line else line for line in text.split("\n")]
            records = [line.split(delimiter) for line in shown if line]
            self._at += size
            self.position += size
            if not records:
                continue
            self.width = self.width or len(records[0])
            width = self.width
            wrong = [n for n, record in enumerate(records) if len(record) != width]
            at_lines = [n for n, line in enumerate(shown, first + 1) if line] if wrong else []
            yield Rows(records, {n: _wrong_width_text(at_lines[n]) for n in wrong})

    def _quoted_rows(self, end: int, max_rows: int) -> Iterator[Rows]:
        records: list[list[str]] = []
        faults: dict[int, str] = {}
        # A row may go on behind the end, where more is read, and what was read is left behind.
        target = self.position + end - self._at
        while self.position < target:
            if records and (len(records) == max_rows or self._may_continue()):
                yield Rows(records, faults)
                records, faults = [], {}
            text = self.read_line()
            if text is None:
                break
            if text in (b"\n", b""):
                continue
            first = self.line
            try:
                fields = self.parse_record(text)
                if self.width and len(fields) != self.width:
                    faults[len(records)] = _wrong_width_text(first)
            except CsvError as fault:
                fields = fault.fields
                faults[len(records)] = str(fault)
            self.width = self.width or len(fields)
            records.append([field.decode("utf-8", "surrogateescape") for field in fields])
        if records:
            yield Rows(records, faults)

    def _may_continue(self) -> bool:
        """Return whether the row of the next line could have more lines, which may not be here."""
        end = self._data.find(b"\n", self._at) + 1 or len(self._data)
        return self._data.count(b'"', self._at, end) % 2 == 1

    def read_line(self) -> bytes | None:
        """Return the next line; see `Reader`."""
        while True:
            end = self._data.find(b"\n", self._at) + 1
            if end or (self._is_ended and self._at < len(self._data)):
                break
            if self._is_ended:
                return None
            self._read_more()
        line = self._data[self._at : end or len(self._data)]
        self._at += len(line)
        self.position += len(line)
        self.line += 1
        text = line.removesuffix(b"\n")
        return text.removesuffix(b"\r") + line[len(text) :]


def _wrong_width_text(line: int) -> str:
    return f"record on line {line}: wrong number of fields"
