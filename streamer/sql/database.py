"""A database as a component sees it: statements, transactions, and what runs at the begin."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from typing import TYPE_CHECKING, Any

from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.message import Execution
from streamer.permissions import ALL, Permissions
from streamer.sql.drivers import Driver, Rows
from streamer.sql.errors import SqlError
from streamer.sql.pooling import Bounds
from streamer.sql.statements import Insert, Select

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Engine, Executable

__all__ = ["Database", "Session"]


class Session:
    """A connection that was taken from the pool."""

    def __init__(self, driver: Driver, connection: Connection) -> None:
        """Take a connection, and what knows its driver."""
        self._driver = driver
        self._connection = connection

    def run(self, statement: str, arguments: Sequence[Any] = ()) -> Rows | None:
        """Run a statement as it is written; return its rows, or None when it is one without."""
        return self._rows(self._raw(statement, arguments))

    def ask(self, statement: Executable, **parameters: Any) -> Rows | None:
        """Run a statement of SQLAlchemy's; see `run`."""
        sent = {name: self._driver.sent(value) for name, value in parameters.items()}
        return self._rows(self._connection.execute(statement, sent))

    def insert(self, insert: Insert, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows."""
        sent = self._driver.sent
        statement = insert.statement(rows)
        self._connection.execute(statement, [insert.row([*map(sent, row)]) for row in rows])

    def script(self, text: str) -> None:
        """Run several statements, separated by semicolons, without arguments."""
        self._driver.script(self._connection, text)

    def stream(self, query: str | Select, arguments: Sequence[Any], size: int) -> Iterator[Rows]:
        """Run a query; return its rows as they come, about `size` at a time."""
        options: dict[str, Any] = {"stream_results": True, "yield_per": size}
        if isinstance(query, str):
            result = self._raw(query, arguments, options)
        else:
            sent = query.parameters([*map(self._driver.sent, arguments)])
            result = self._connection.execute(query.statement, sent, execution_options=options)
        columns = _columns(result)
        for rows in result.partitions(size):
            yield Rows(columns, self._values(rows))

    def _raw(
        self, statement: str, arguments: Sequence[Any], options: dict[str, Any] | None = None
    ) -> CursorResult[Any]:
        if not arguments:
            # Then drivers take a text for what it is, several statements in it where they can.
            asked = {"no_parameters": True, **(options or {})}
            return self._connection.exec_driver_sql(statement, execution_options=asked)
        sent = tuple(map(self._driver.sent, arguments))
        text = self._driver.raw(statement)
        return self._connection.exec_driver_sql(text, sent, execution_options=options)

    def _rows(self, result: CursorResult[Any]) -> Rows | None:
        if not result.returns_rows:
            result.close()
            return None
        columns = _columns(result)
        return Rows(columns, self._values(result.fetchall()))

    def _values(self, rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        value = self._driver.value
        return [tuple(map(value, row)) for row in rows]


class Database:
    """An engine, and what is run before the first statement. Threads may share it."""

    def __init__(
        self,
        driver: Driver,
        dsn: str,
        bounds: Bounds,
        init_files: Sequence[str] = (),
        init_statement: str = "",
        permissions: Permissions = ALL,
    ) -> None:
        """Take all that is needed later; nothing is connected yet.

        Raises:
            StreamerError: a file for the begin cannot be read.
        """
        self._driver = driver
        self._dsn = dsn
        self._bounds = bounds
        scripts = _read(init_files, permissions)
        self._scripts = [(f"init_file '{path}'", text) for path, text in scripts]
        if init_statement:
            self._scripts.append(("init_statement", init_statement))
        self._lock = threading.RLock()  # whoever begins asks for the engine again
        self._engine: Engine | None = None
        self._begun = False

    def begin(self, ex: Execution, origin: Origin) -> None:
        """Run what a config wants to be run first, once; a failure is logged, and no more.

        Raises:
            SqlError: there is no connection.
        """
        if self._begun:
            return
        engine = self._connected()
        with self._lock:
            if self._begun:
                return
            with self._told():
                engine.connect().close()
            for name, text in self._scripts:
                try:
                    with self.session() as session:
                        session.script(text)
                except SqlError as e:
                    origin.log(ex, "WARN", f"Failed to execute {name}: {e}")
                else:
                    origin.log(ex, "DEBUG", f"Successfully ran {name}")
            self._begun = True

    def run(self, statement: str, arguments: Sequence[Any] = ()) -> Rows | None:
        """Run a statement as it is written; return its rows, or None when it is one without.

        Raises:
            SqlError: it failed.
        """
        with self.session() as session:
            return session.run(statement, arguments)

    def ask(self, statement: Executable, **parameters: Any) -> Rows | None:
        """Run a statement of SQLAlchemy's; see `run`."""
        with self.session() as session:
            return session.ask(statement, **parameters)

    def insert(self, insert: Insert, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, in a transaction when there are several.

        Raises:
            SqlError: one failed; then none counts.
        """
        with self.session() if len(rows) == 1 else self.transaction() as session:
            session.insert(insert, rows)

    def stream(self, query: str | Select, arguments: Sequence[Any], size: int) -> Iterator[Rows]:
        """Run a query and return its rows bit by bit.

        Raises:
            SqlError: it failed.
        """
        # PostgreSQL's cursors last as long as a transaction.
        with self.transaction() as session:
            yield from session.stream(query, arguments, size)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Lend a connection whose statements are transactions of their own.

        Raises:
            SqlError: there is none, or a statement failed.
        """
        engine = self._connected()
        with self._told(), engine.connect() as connection:
            yield Session(self._driver, connection)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Lend a connection with a transaction; it is rolled back when the block raises."""
        engine = self._connected()
        with self._told(), engine.connect() as connection:
            # Connections commit by themselves, as Go's do, until they are told to wait.
            connection.exec_driver_sql("BEGIN")
            yield Session(self._driver, connection)
            connection.commit()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        if self._engine is not None:
            self._engine.dispose()

    def _connected(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._driver.engine(self._dsn, **self._bounds.pool())
            return self._engine

    @contextmanager
    def _told(self) -> Iterator[None]:
        from sqlalchemy.exc import (
            DataError,
            DBAPIError,
            IntegrityError,
            SQLAlchemyError,
            StatementError,
        )

        try:
            yield
        except (DBAPIError, StatementError) as e:
            # What is no error of the driver's is one of a value that it cannot take.
            refused = isinstance(e, DataError | IntegrityError) or not isinstance(e, DBAPIError)
            cause = e.orig or e
            refused = refused or self._driver.refuses(cause)
            raise SqlError(self._driver.told(cause), refused=refused) from None
        except (SQLAlchemyError, OverflowError) as e:
            raise SqlError(str(e), refused=isinstance(e, OverflowError)) from None


def _columns(result: CursorResult[Any]) -> list[str]:
    # As the database names them; SQLAlchemy changes some of SQLite's.
    description = result.cursor.description if result.cursor is not None else ()
    return [column[0] for column in description or ()]


def _read(patterns: Sequence[str], permissions: Permissions) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        for path in sorted(glob(permissions.file(pattern), recursive=True)):
            try:
                yield path, permissions.read(path).decode()
            except (OSError, ValueError) as e:
                raise StreamerError(f"init_files: {path}: {e}") from e
