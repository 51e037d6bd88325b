"""CSV as Go's encoding/csv reads it, with its errors: records of equal length, quotes by the book.

Places in errors are lines, and columns counted in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamer.bloblang.errors import QueryError

_BARE_QUOTE_REASON = 'bare " in non-quoted-field'
_STRAY_QUOTE_REASON = 'extraneous or missing " in quoted-field'


class CsvError(QueryError):
    """A record that is no CSV.

    Attributes:
        fields: those of its fields that stand before the fault.
    """

    def __init__(self, text: str, fields: list[bytes]) -> None:
        """Take the text, and the fields."""
        super().__init__(text)
        self.fields = fields


def check_delimiter(delimiter: bytes) -> None:
    """Check that a letter may stand between fields.

    Raises:
        QueryError: it may not.
    """
    if delimiter in (b'"', b"\r", b"\n", b"\0"):
        raise QueryError("csv: invalid field or comment delimiter")


def read_csv(raw: bytes, delimiter: bytes, lazy: bool, max_records: int = 0) -> list[list[bytes]]:
    """Return the records of a text; empty lines are none.

    Args:
        raw: the text.
        delimiter: one letter.
        lazy: whether a quote may stand in a field that is not quoted, and alone in one that is.
        max_records: one record more than so many is read at most; 0 for any number.

    Raises:
        QueryError: in Go's words.
    """
    check_delimiter(delimiter)
    records: list[list[bytes]] = []
    for number, fields in _TextReader(raw, delimiter, lazy).read_records():
        if records and len(fields) != len(records[0]):
            raise QueryError(f"record on line {number}: wrong number of fields")
        records.append(fields)
        if max_records and len(records) > max_records:
            break
    return records


class CsvReader:
    """Reads records from lines that somebody gives; `line` is the number of the line read last."""

    def __init__(self, delimiter: bytes, lazy: bool) -> None:
        """Take what `read_csv` takes."""
        self.delimiter = delimiter
        self.lazy = lazy
        self.line = 0

    def read_line(self) -> bytes | None:
        """Return the next line with a plain line break, if it has one; None at the end."""
        raise NotImplementedError

    def parse_record(self, text: bytes) -> list[bytes]:
        """Return the record that begins with the line read last, which is not empty.

        Raises:
            Fault: it is none.
        """
        if b'"' not in text:
            return text.removesuffix(b"\n").split(self.delimiter)
        fields: list[bytes] = []
        self._parse_quoted(text, self.line, fields)
        return fields

    def read_records(self) -> Iterator[tuple[int, list[bytes]]]:
        """Return the records, each with the number of its first line."""
        while (text := self.read_line()) is not None:
            if text not in (b"\n", b""):
                start = self.line
                yield start, self.parse_record(text)

    def _make_error(self, start: int, column: int, reason: str, fields: list[bytes]) -> CsvError:
        where = f"parse error on line {self.line}, column {column}: {reason}"
        text = where if self.line == start else f"record on line {start}; {where}"
        return CsvError(text, fields)

    def _parse_quoted(self, text: bytes, start: int, fields: list[bytes]) -> None:
        column = 1
        while True:
            if text.startswith(b'"'):
                parsed = self._read_quoted_field(text[1:], column + 1, start, fields)
                field, text, column, more = parsed
                fields.append(field)
                if not more:
                    return
                continue
            field, comma, rest = text.partition(self.delimiter)
            field = field if comma else field.removesuffix(b"\n")
            if not self.lazy and b'"' in field:
                raise self._make_error(
                    start, column + field.index(b'"'), _BARE_QUOTE_REASON, fields
                )
            fields.append(field)
            if not comma:
                return
            column += len(field) + len(comma)
            text = rest

    def _read_quoted_field(
        self, text: bytes, column: int, start: int, before: list[bytes]
    ) -> tuple[bytes, bytes, int, bool]:
        """Read a field up to its closing quote, over lines if need be.

        Returns:
            The field, what comes behind its delimiter, the column there, and whether there is more.
        """
        parts: list[bytes] = []
        while True:
            at = text.find(b'"')
            if at >= 0:
                parts.append(text[:at])
                text = text[at + 1 :]
                column += at + 1
                if text.startswith(b'"'):
                    parts.append(b'"')
                    text = text[1:]
                    column += 1
                elif text.startswith(self.delimiter):
                    size = len(self.delimiter)
                    return b"".join(parts), text[size:], column + size, True
                elif text in (b"", b"\n"):
                    return b"".join(parts), b"", column, False
                elif self.lazy:
                    parts.append(b'"')
                else:
                    raise self._make_error(start, column - 1, _STRAY_QUOTE_REASON, before)
                continue
            parts.append(text)
            column += len(text)
            following = self.read_line() if text else None
            if following is not None:
                text, column = following, 1
            elif self.lazy:
                return b"".join(parts), b"", column, False
            else:
                raise self._make_error(start, column, _STRAY_QUOTE_REASON, before)


class _TextReader(CsvReader):
    """Reads a text that is at hand."""

    def __init__(self, raw: bytes, delimiter: bytes, lazy: bool) -> None:
        super().__init__(delimiter, lazy)
        self.lines = raw.split(b"\n")
        self.ends_with_break = not self.lines[-1]
        if self.ends_with_break:
            self.lines.pop()

    def read_line(self) -> bytes | None:
        if self.line == len(self.lines):
            return None
        text = self.lines[self.line]
        self.line += 1
        last = self.line == len(self.lines) and not self.ends_with_break
        return text.removesuffix(b"\r") + (b"" if last else b"\n")
