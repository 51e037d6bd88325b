"""CSV as Go's encoding/csv reads it, with its errors: records of equal length, quotes by the book.

Places in errors are lines, and columns counted in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamer.bloblang.errors import QueryError

_BARE = 'bare " in non-quoted-field'
_QUOTE = 'extraneous or missing " in quoted-field'


def read_csv(raw: bytes, delimiter: bytes, lazy: bool) -> list[list[bytes]]:
    """Return the records of a text; empty lines are none.

    Args:
        raw: the text.
        delimiter: one letter.
        lazy: whether a quote may stand in a field that is not quoted, and alone in one that is.

    Raises:
        QueryError: in Go's words.
    """
    if delimiter in (b'"', b"\r", b"\n", b"\0"):
        raise QueryError("csv: invalid field or comment delimiter")
    records: list[list[bytes]] = []
    for number, fields in _Reader(raw, delimiter, lazy).records():
        if records and len(fields) != len(records[0]):
            raise QueryError(f"record on line {number}: wrong number of fields")
        records.append(fields)
    return records


class _Reader:
    """A text on its way through; `line` is the number of the line read last."""

    def __init__(self, raw: bytes, delimiter: bytes, lazy: bool) -> None:
        self.lines = raw.split(b"\n")
        if not self.lines[-1]:
            self.lines.pop()
            self.ended = True
        else:
            self.ended = False
        self.delimiter = delimiter
        self.lazy = lazy
        self.line = 0

    def next_line(self) -> bytes | None:
        """Return the next line with a plain line break, if it has one."""
        if self.line == len(self.lines):
            return None
        text = self.lines[self.line]
        self.line += 1
        last = self.line == len(self.lines) and not self.ended
        return text.removesuffix(b"\r") + (b"" if last else b"\n")

    def records(self) -> Iterator[tuple[int, list[bytes]]]:
        while (text := self.next_line()) is not None:
            if text in (b"\n", b""):
                continue
            start = self.line
            if b'"' in text:
                yield start, self._quoted(text, start)
            else:
                yield start, text.removesuffix(b"\n").split(self.delimiter)

    def _fault(self, start: int, line: int, column: int, reason: str) -> QueryError:
        where = f"parse error on line {line}, column {column}: {reason}"
        return QueryError(where if line == start else f"record on line {start}; {where}")

    def _quoted(self, text: bytes, start: int) -> list[bytes]:
        fields: list[bytes] = []
        column = 1
        while True:
            if text.startswith(b'"'):
                field, text, column, more = self._quoted_field(text[1:], column + 1, start)
                fields.append(field)
                if not more:
                    return fields
                continue
            field, comma, rest = text.partition(self.delimiter)
            field = field if comma else field.removesuffix(b"\n")
            if not self.lazy and b'"' in field:
                raise self._fault(start, self.line, column + field.index(b'"'), _BARE)
            fields.append(field)
            if not comma:
                return fields
            column += len(field) + len(comma)
            text = rest

    def _quoted_field(self, text: bytes, column: int, start: int) -> tuple[bytes, bytes, int, bool]:
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
                    raise self._fault(start, self.line, column - 1, _QUOTE)
                continue
            parts.append(text)
            column += len(text)
            following = self.next_line() if text else None
            if following is not None:
                text, column = following, 1
            elif self.lazy:
                return b"".join(parts), b"", column, False
            else:
                raise self._fault(start, self.line, column, _QUOTE)
