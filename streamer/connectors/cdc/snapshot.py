"""Snapshots: tables are read page by page in the order of their primary keys.

The key of the last row is spooled with its page, so that a snapshot which was interrupted goes on
behind it, with what the database has by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from streamer.connectors.cdc.change_writer import (
    OPERATION,
    READ,
    TABLE,
    ChangeWriter,
    StreamEndedError,
)

DONE: Final = "done"
_AT: Final = "table"
_KEY: Final = "key"


class Page(NamedTuple):
    """Rows of a table.

    Attributes:
        rows: an object for each row.
        key: the key of the last one, as a JSON value; None behind the last page.
    """

    rows: Sequence[Mapping[str, Any]]
    key: Any


class SnapshotTable(Protocol):
    """A table of which a snapshot is read."""

    @property
    def place(self) -> str:
        """The identity of the table in the database."""

    @property
    def name(self) -> str:
        """Its name, as messages have it."""

    def read_page(self, key: Any) -> Page:
        """Return the rows behind a key, or the first ones where it is None."""


def read_snapshot(
    tables: Sequence[SnapshotTable],
    writer: ChangeWriter,
    mark: Mapping[str, Any],
    position: Mapping[str, Any],
    is_stopping: Callable[[], bool],
) -> None:
    """Spool the rows of tables.

    Args:
        tables: in their order.
        writer: of the spool.
        mark: what is on the disk already of the snapshot.
        position: a part of the marks: where changes are read from afterwards.
        is_stopping: whether the stream stops.

    Raises:
        StreamEndedError: the stream stops before the end.
    """
    done = list(mark.get(DONE, ()))
    for table in tables:
        if table.place in done:
            continue
        key = mark.get(_KEY) if mark.get(_AT) == table.place else None
        while True:
            if is_stopping():
                raise StreamEndedError
            page = table.read_page(key)
            for row in page.rows:
                writer.add(row, {TABLE: table.name, OPERATION: READ})
            key = page.key
            if key is None:
                done.append(table.place)
            at = {} if key is None else {_AT: table.place, _KEY: key}
            if page.rows:
                writer.write({**position, DONE: list(done), **at})
            if key is None:
                break
