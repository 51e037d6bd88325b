"""A database as a component sees it: statements, transactions, and what runs at the begin."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.message import Execution
from streamer.sql.drivers import Connection, Driver, Rows, SqlError
from streamer.sql.pool import Bounds, Pool

__all__ = ["Database", "SqlError"]


class Database:
    """A pool of connections, and what is run before the first statement. Threads may share it.

    Attributes:
        driver: the kind of database.
    """

    def __init__(
        self,
        driver: Driver,
        dsn: str,
        bounds: Bounds,
        init_files: Sequence[str] = (),
        init_statement: str = "",
    ) -> None:
        """Take all that is needed later; nothing is connected yet.

        Raises:
            StreamerError: a file for the begin cannot be read.
        """
        self.driver = driver
        self._pool = Pool(lambda: driver.connect(dsn), bounds)
        self._scripts = [(f"init_file '{path}'", text) for path, text in _read(init_files)]
        if init_statement:
            self._scripts.append(("init_statement", init_statement))
        self._lock = threading.Lock()
        self._begun = False

    def begin(self, ex: Execution, origin: Origin) -> None:
        """Run what a config wants to be run first, once; a failure is logged, and no more.

        Raises:
            SqlError: there is no connection.
        """
        if self._begun:
            return
        with self._lock:
            if self._begun:
                return
            with self._pool.connection() as connection:
                for name, text in self._scripts:
                    try:
                        connection.script(text)
                    except SqlError as e:
                        origin.log(ex, "WARN", f"Failed to execute {name}: {e}")
                    else:
                        origin.log(ex, "DEBUG", f"Successfully ran {name}")
            self._begun = True

    def run(self, statement: str, arguments: Sequence[Any] = ()) -> Rows | None:
        """Run a statement; see `Connection.run`."""
        with self._pool.connection() as connection:
            return connection.run(statement, arguments)

    def insert(self, statements: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Run statements with their arguments, in a transaction when there are several.

        Raises:
            SqlError: one failed; then none counts.
        """
        asked = list(statements)
        if len(asked) == 1:
            self.run(*asked[0])
            return
        with self.transaction() as connection:
            for text, arguments in asked:
                connection.run(text, arguments)

    def stream(self, query: str, arguments: Sequence[Any], size: int) -> Iterator[Rows]:
        """Run a query and return its rows bit by bit; see `Connection.stream`."""
        with self._pool.connection() as connection:
            yield from connection.stream(query, arguments, size)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Lend a connection with a transaction; it is rolled back when the block raises."""
        with self._pool.connection() as connection:
            connection.run("BEGIN", ())
            try:
                yield connection
            except BaseException:
                if connection.alive():
                    connection.run("ROLLBACK", ())
                raise
            connection.run("COMMIT", ())

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._pool.close()


def _read(patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        for path in sorted(glob(pattern, recursive=True)):
            try:
                yield path, Path(path).read_text(encoding="utf-8")
            except (OSError, ValueError) as e:
                raise StreamerError(f"init_files: {path}: {e}") from e
