"""A database as a component sees it: statements, transactions, and what runs at the begin."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.sql.drivers import Driver, QueryRows
from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.pool_bounds import PoolBounds
from streamer.connectors.sql.statements import InsertStatement, SelectStatement
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.component_ref import ComponentRef

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Engine, Executable

_CARDINALITY_VIOLATION: Final = "21000"
_DEADLOCK_STATES: Final = ("40001", "40P01")
_MYSQL_DEADLOCK: Final = 1213

__all__ = ["Database", "Session"]


class Session:
    """A connection that was taken from the pool."""

    def __init__(self, driver: Driver, connection: Connection) -> None:
        """Take a connection, and what knows its driver."""
        self._driver = driver
        self._connection = connection

    def run(self, statement: str, arguments: Sequence[Any] = ()) -> QueryRows | None:
        """Run a statement as it is written; return its rows, or None when it is one without."""
        return self._rows(self._execute_raw(statement, arguments))

    def execute(self, statement: Executable, **parameters: Any) -> QueryRows | None:
        """Run a statement of SQLAlchemy's; see `run`."""
        sent = {name: self._driver.to_argument(value) for name, value in parameters.items()}
        return self._rows(self._connection.execute(statement, sent))

    def execute_many(self, statement: Executable, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement of SQLAlchemy's for each row of arguments `a0`, `a1` and so on."""
        sent = self._driver.to_argument
        self._connection.execute(
            statement, [{f"a{n}": sent(value) for n, value in enumerate(row)} for row in rows]
        )

    def insert(self, insert: InsertStatement, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows."""
        sent = self._driver.to_argument
        statement = insert.statement_for(rows)
        self._connection.execute(
            statement, [insert.row_parameters([*map(sent, row)]) for row in rows]
        )

    def script(self, text: str) -> None:
        """Run several statements, separated by semicolons, without arguments."""
        self._driver.run_script(self._connection, text)

    def stream(
        self, query: str | SelectStatement, arguments: Sequence[Any], size: int
    ) -> Iterator[QueryRows]:
        """Run a query; return its rows as they come, about `size` at a time."""
        options: dict[str, Any] = {"stream_results": True, "yield_per": size}
        if isinstance(query, str):
            result = self._execute_raw(query, arguments, options)
        else:
            sent = query.parameters([*map(self._driver.to_argument, arguments)])
            result = self._connection.execute(query.statement, sent, execution_options=options)
        columns = _column_names(result)
        for rows in result.partitions(size):
            yield QueryRows(columns, self._values(rows))

    def _execute_raw(
        self, statement: str, arguments: Sequence[Any], options: dict[str, Any] | None = None
    ) -> CursorResult[Any]:
        if not arguments:
            # Then drivers take a text for what it is, several statements in it where they can.
            options_with_flag = {"no_parameters": True, **(options or {})}
            return self._connection.exec_driver_sql(statement, execution_options=options_with_flag)
        sent = tuple(map(self._driver.to_argument, arguments))
        text = self._driver.to_raw(statement)
        return self._connection.exec_driver_sql(text, sent, execution_options=options)

    def _rows(self, result: CursorResult[Any]) -> QueryRows | None:
        if not result.returns_rows:
            result.close()
            return None
        columns = _column_names(result)
        return QueryRows(columns, self._values(result.fetchall()))

    def _values(self, rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        value = self._driver.from_value
        return [tuple(map(value, row)) for row in rows]


class Database:
    """An engine, and what is run before the first statement. Threads may share it."""

    def __init__(
        self,
        driver: Driver,
        dsn: str,
        bounds: PoolBounds,
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
        scripts = _read_files(init_files, permissions)
        self._scripts = [(f"init_file '{path}'", text) for path, text in scripts]
        if init_statement:
            self._scripts.append(("init_statement", init_statement))
        self._lock = threading.RLock()  # whoever begins asks for the engine again
        self._engine: Engine | None = None
        self._has_begun = False

    def begin(self, ex: Execution, origin: ComponentRef) -> None:
        """Run what a config wants to be run first, once; a failure is logged, and no more.

        Raises:
            SqlError: there is no connection.
        """
        if self._has_begun:
            return
        engine = self._get_engine()
        with self._lock:
            if self._has_begun:
                return
            with self._map_errors():
                engine.connect().close()
            for name, text in self._scripts:
                try:
                    with self.session() as session:
                        session.script(text)
                except SqlError as e:
                    origin.log(ex, "WARN", f"Failed to execute {name}: {e}")
                else:
                    origin.log(ex, "DEBUG", f"Successfully ran {name}")
            self._has_begun = True

    def run(self, statement: str, arguments: Sequence[Any] = ()) -> QueryRows | None:
        """Run a statement as it is written; return its rows, or None when it is one without.

        Raises:
            SqlError: it failed.
        """
        with self.session() as session:
            return session.run(statement, arguments)

    def execute(self, statement: Executable, **parameters: Any) -> QueryRows | None:
        """Run a statement of SQLAlchemy's; see `run`."""
        with self.session() as session:
            return session.execute(statement, **parameters)

    def stream(
        self, query: str | SelectStatement, arguments: Sequence[Any], size: int
    ) -> Iterator[QueryRows]:
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
        engine = self._get_engine()
        with self._map_errors(), engine.connect() as connection:
            yield Session(self._driver, connection)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Lend a connection with a transaction; it is rolled back when the block raises."""
        engine = self._get_engine()
        with self._map_errors(), engine.connect() as connection:
            # Connections commit by themselves, as Go's do, until they are told to wait.
            if self._driver.begin:
                connection.exec_driver_sql(self._driver.begin)
            elif self._driver.transaction_level:
                # It is what it was before once the connection is back in the pool.
                connection.execution_options(isolation_level=self._driver.transaction_level)
            yield Session(self._driver, connection)
            connection.commit()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        if self._engine is not None:
            self._engine.dispose()

    def _get_engine(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._driver.engine(self._dsn, **self._bounds.pool_arguments())
            return self._engine

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
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
            refused = refused or self._driver.is_value_error(cause)
            raise SqlError(
                self._driver.error_text(cause),
                is_refused=refused,
                repeats_row=getattr(cause, "sqlstate", None) == _CARDINALITY_VIOLATION,
                is_deadlock=_is_deadlock(cause),
            ) from None
        except (SQLAlchemyError, OverflowError) as e:
            raise SqlError(str(e), is_refused=isinstance(e, OverflowError)) from None


def _is_deadlock(cause: BaseException) -> bool:
    if getattr(cause, "sqlstate", None) in _DEADLOCK_STATES:
        return True
    return type(cause).__module__.startswith("pymysql") and cause.args[:1] == (_MYSQL_DEADLOCK,)


def _column_names(result: CursorResult[Any]) -> list[str]:
    # As the database names them; SQLAlchemy changes some of SQLite's.
    description = result.cursor.description if result.cursor is not None else ()
    return [column[0] for column in description or ()]


def _read_files(patterns: Sequence[str], permissions: Permissions) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        for path in sorted(glob(permissions.file(pattern), recursive=True)):
            try:
                yield path, permissions.read(path).decode()
            except (OSError, ValueError) as e:
                raise StreamerError(f"init_files: {path}: {e}") from e
