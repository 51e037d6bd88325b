"""Changes of the rows of a table: inserts, upserts and deletes, many in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamer.connectors.sql.database import Database, Session
from streamer.connectors.sql.drivers import MYSQL
from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.statements import InsertStatement, parametrised_sql

if TYPE_CHECKING:
    from sqlalchemy import Executable

UPSERT_BY: Final = "upsert_by"


class RowChange(NamedTuple):
    """A change of one row.

    Attributes:
        values: a value for each column; of a delete only those of the key count.
        is_delete: whether the row goes away.
    """

    values: Sequence[Any]
    is_delete: bool = False


def make_upsert_suffix(driver: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return what makes an INSERT replace the row that has the same key.

    Args:
        driver: as configs name it.
        columns: those that are inserted.
        key: those that a unique index or the primary key of the table has.

    >>> make_upsert_suffix("postgres", ["id", "n"], ["id"])
    'ON CONFLICT (id) DO UPDATE SET n = excluded.n'
    >>> make_upsert_suffix("mysql", ["id", "n"], ["id"])
    'ON DUPLICATE KEY UPDATE n = VALUES(n)'
    """
    others = [column for column in columns if column not in key]
    if driver == MYSQL:
        # Nothing else leaves a row as it is and yet fails for any other reason.
        updates = [f"{name} = VALUES({name})" for name in others] or [f"{key[0]} = {key[0]}"]
        return f"ON DUPLICATE KEY UPDATE {', '.join(updates)}"
    if not others:
        return f"ON CONFLICT ({', '.join(key)}) DO NOTHING"
    updates = [f"{name} = excluded.{name}" for name in others]
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(updates)}"


class DeleteStatement:
    """A DELETE of the row that has a key."""

    def __init__(self, table: str, key: Sequence[str]) -> None:
        """Take the names of the table and of the key's columns."""
        where = " AND ".join(f"{name} = ?" for name in key)
        self._text = f"DELETE FROM {table} WHERE {where}"
        self._statement: Executable | None = None

    @property
    def statement(self) -> Executable:
        """The statement; its parameters are called `a0`, `a1` and so on."""
        if self._statement is None:
            self._statement = parametrised_sql(self._text)
        return self._statement


class RowWriter:
    """Writes changes of the rows of one table, all of them or none."""

    def __init__(
        self,
        database: Database,
        insert: InsertStatement,
        delete: DeleteStatement | None = None,
        key_places: Sequence[int] = (),
    ) -> None:
        """Take the statements.

        Args:
            database: where the table is.
            insert: for rows that are inserted, or that replace those of the same key.
            delete: for rows that are deleted.
            key_places: where the columns of the key stand among the values of a row; nothing where
                rows are inserted without one.
        """
        self._database = database
        self._insert = insert
        self._delete = delete
        self._key_places = key_places

    def write(self, changes: Sequence[RowChange]) -> None:
        """Write changes in their order, in a transaction where there are several.

        Raises:
            SqlError: one failed; then none counts.
        """
        if len(changes) == 1:
            with self._database.session() as session:
                self._write_run(session, changes[0].is_delete, [changes[0].values])
            return
        try:
            with self._database.transaction() as session:
                for is_delete, run in _cut_runs(changes):
                    self._write_run(session, is_delete, self._without_replaced(run, is_delete))
        except SqlError as error:
            if not error.repeats_row:
                raise
            # One statement may not change a row twice: the database holds more keys to be equal
            # than we do, or it is the config's own ON CONFLICT.
            with self._database.transaction() as session:
                for change in changes:
                    self._write_run(session, change.is_delete, [change.values])

    def _write_run(self, session: Session, is_delete: bool, rows: Sequence[Sequence[Any]]) -> None:
        if not is_delete:
            session.insert(self._insert, rows)
            return
        assert self._delete is not None
        session.execute_many(self._delete.statement, [*map(self._key_of, rows)])

    def _without_replaced(
        self, rows: Iterable[Sequence[Any]], is_delete: bool
    ) -> Sequence[Sequence[Any]]:
        """Leave out rows that a later one replaces; sort the others by key.

        All writers lock rows in the same order then, so that none waits for one that waits for it.
        """
        if not self._key_places:
            return [*rows]
        by_key: dict[Any, Sequence[Any]] = {}
        for row in rows:
            key = self._key_of(row)
            # A key with null in it is like no other.
            name = repr(key) if None not in key else (len(by_key), "")
            by_key[name] = row
        return [by_key[name] for name in sorted(by_key, key=str)]

    def _key_of(self, row: Sequence[Any]) -> list[Any]:
        return [row[place] for place in self._key_places]


def _cut_runs(changes: Sequence[RowChange]) -> Iterator[tuple[bool, Iterator[Sequence[Any]]]]:
    """Yield changes of one kind that follow one another."""
    for is_delete, run in groupby(changes, key=lambda change: change.is_delete):
        yield is_delete, (change.values for change in run)
