"""The messages of PostgreSQL's plugin `pgoutput`, as its protocol of version 1 has them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from streamer.core.errors import StreamerError

NULL: Final = 0x6E
UNCHANGED: Final = 0x75
TEXT: Final = 0x74

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">bQQq")
_NEW_ROW: Final = 0x4E
_WHOLE_ROW: Final = 0x4F
_KEY_ROW: Final = 0x4B


class PgoutputError(StreamerError):
    """A message of the server that is not of the protocol."""


class Begin(NamedTuple):
    """The begin of a transaction.

    Attributes:
        lsn: of its commit, which tells it from all others.
        committed: when, in microseconds since 2000.
    """

    lsn: int
    committed: int


class Commit(NamedTuple):
    """The end of a transaction.

    Attributes:
        end: the LSN behind it.
    """

    end: int


class Column(NamedTuple):
    """A column of a relation, and the number of its type."""

    name: str
    type: int


class Relation(NamedTuple):
    """A table, as it is from then on.

    Attributes:
        number: by which changes name it.
        schema: the schema that it is in.
        name: its name.
        columns: in their order.
    """

    number: int
    schema: str
    name: str
    columns: tuple[Column, ...]


class Cell(NamedTuple):
    """A value of a row.

    Attributes:
        kind: `NULL`, `UNCHANGED` (a TOAST value that the change has left as it was), or `TEXT`.
        text: the value as PostgreSQL writes it.
    """

    kind: int
    text: bytes


Row = Sequence[Cell]


class RowChange(NamedTuple):
    """An insert, update or delete.

    Attributes:
        operation: `I`, `U` or `D`.
        relation: the number of its table.
        before: the row before, or its key with nulls beside; None where the server does not say.
        after: the row now; None for a delete.
        is_whole: whether `before` has all columns.
    """

    operation: str
    relation: int
    before: Row | None
    after: Row | None
    is_whole: bool


class Truncate(NamedTuple):
    """Tables whose rows are all gone, by their numbers."""

    relations: tuple[int, ...]


Change = Begin | Commit | Relation | RowChange | Truncate


class _Reader:
    """Reads one message from its begin to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 1

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        values = form.unpack_from(self._data, self._at)
        self._at += form.size
        return values

    def number(self, form: struct.Struct) -> int:
        return self.take(form)[0]

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def text(self) -> str:
        end = self._data.index(0, self._at)
        start, self._at = self._at, end + 1
        return self._data[start:end].decode(errors="replace")

    def row(self) -> Row:
        return [self._cell() for _ in range(self.number(_INT16))]

    def _cell(self) -> Cell:
        kind = self.byte()
        if kind in (NULL, UNCHANGED):
            return Cell(kind, b"")
        if kind != TEXT:
            raise PgoutputError(f"a value of the unknown kind {chr(kind)!r}")
        size = self.number(_INT32)
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._data):
            raise PgoutputError(f"a value of {size} bytes, more than its message has")
        return Cell(TEXT, self._data[start : self._at])


def parse_change(data: bytes) -> Change | None:
    """Return what a message says; None for one of a kind that has no rows.

    Raises:
        PgoutputError: it is cut short, or of a kind that the protocol does not have.
    """
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError) as e:
        raise PgoutputError(f"a message of pgoutput that is cut short: {e}") from None


def _parse(data: bytes) -> Change | None:
    kind, reader = chr(data[0]), _Reader(data)
    if kind == "B":
        lsn, committed, _ = reader.take(_BEGIN)
        return Begin(lsn, committed)
    if kind == "C":
        _, _, end, _ = reader.take(_COMMIT)
        return Commit(end)
    if kind == "R":
        return _parse_relation(reader)
    if kind in "IUD":
        return _parse_row_change(kind, reader)
    if kind == "T":
        count = reader.number(_INT32)
        reader.byte()
        return Truncate(tuple(reader.number(_UINT32) for _ in range(count)))
    if kind in "OYM":  # where it was changed first, a type, and what a program has written itself
        return None
    raise PgoutputError(f"a message of the unknown kind {kind!r}")


def _parse_relation(reader: _Reader) -> Relation:
    number = reader.number(_UINT32)
    # For the system's own schema the name is left out.
    schema, name = reader.text() or "pg_catalog", reader.text()
    reader.byte()
    columns = []
    for _ in range(reader.number(_INT16)):
        reader.byte()
        columns.append(Column(reader.text(), reader.number(_UINT32)))
        reader.number(_INT32)
    return Relation(number, schema, name, tuple(columns))


def _parse_row_change(kind: str, reader: _Reader) -> RowChange:
    number, before, after, is_whole = reader.number(_UINT32), None, None, False
    while not reader.is_at_end():
        part = reader.byte()
        if part == _NEW_ROW:
            after = reader.row()
        elif part in (_WHOLE_ROW, _KEY_ROW):
            before, is_whole = reader.row(), part == _WHOLE_ROW
        else:
            raise PgoutputError(f"a row of the unknown kind {chr(part)!r}")
    if (after if kind != "D" else before) is None:
        raise PgoutputError(f"a change {kind!r} without its row")
    return RowChange(kind, number, before, after, is_whole)


def parse_lsn(text: str) -> int:
    """Return the number of an LSN such as `16/B374D848`.

    Raises:
        PgoutputError: it is none.
    """
    high, slash, low = text.partition("/")
    try:
        if slash:
            return (int(high, 16) << 32) + int(low, 16)
    except ValueError:
        pass
    raise PgoutputError(f"{text!r} is no LSN")


def format_lsn(lsn: int) -> str:
    """Return an LSN as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
