"""One query in a database that reaches nothing but its tables, in the process that is for it.

The text of a query may be anybody's. There are no other files than those that are named, no
network, no extension and no setting, and nothing is written but to the directory for temporary
files, where one is named.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamer.connectors.duckdb.errors import QueryError, read_error

if TYPE_CHECKING:
    import pyarrow as pa

READERS: Final = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}
"""The functions of DuckDB that read files, by the format."""

_INTERRUPT_INTERVAL_S: Final = 0.05
_FETCH_ROWS: Final = 65_536
_EXPLAIN: Final = "EXPLAIN "
_ODD_TYPES: Final = re.compile(
    r"\b(INTERVAL|BIT|BIGNUM|TIME WITH TIME ZONE|VARIANT|UNION|GEOMETRY)\b"
)
"""Types whose values messages do not have, also inside of others."""

_TEXT_TYPES: Final = frozenset({"interval", "bit", "bignum", "time with time zone"})


class TableFile(NamedTuple):
    """A file that is a table of the query.

    Attributes:
        name: the table's.
        path: where it is.
        form: its format, a key of `READERS`.
    """

    name: str
    path: str
    form: str


class SessionSettings(NamedTuple):
    """The query of a session, its files, and its bounds.

    Attributes:
        query: the SELECT.
        memory_bytes: what DuckDB may use.
        temp_directory: where larger queries may write; empty for nowhere.
        files: the files that it may read.
        max_rows: rows that an answer has at most.
        max_bytes: bytes likewise.
    """

    query: str
    memory_bytes: int
    temp_directory: str = ""
    files: Sequence[TableFile] = ()
    max_rows: int = 1_000_000
    max_bytes: int = 256 << 20


class Answer(NamedTuple):
    """The rows that a query gives.

    Attributes:
        body: a stream of Arrow.
        json_columns: the places of columns whose texts are JSON.
    """

    body: Any
    json_columns: Sequence[int]


class QuerySession:
    """A connection with the tables of one query."""

    def __init__(self, settings: SessionSettings) -> None:
        """Open the database, and let nothing but the files be reached."""
        import duckdb

        self._settings = settings
        self._connection: Any = duckdb.connect(
            ":memory:",
            config={
                "threads": 1,
                "memory_limit": f"{settings.memory_bytes}B",
                "temp_directory": settings.temp_directory,
                "preserve_insertion_order": True,
                "allow_persistent_secrets": False,
                "allow_community_extensions": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
                "errors_as_json": True,
            },
        )
        run = self._connection.execute
        run("SET timezone = 'UTC'")
        allowed = [text for file in settings.files for text in {file.path, escape_glob(file.path)}]
        run(f"SET allowed_paths = [{', '.join(map(quote_text, allowed))}]")
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")

    def set_table(self, name: str, rows: pa.Table) -> None:
        """Let a table have these rows from now on."""
        self._connection.register(name, rows)

    def run(self, rows: pa.Table, batch: str, seconds: float) -> Answer:
        """Run the query over a batch.

        Args:
            rows: the batch.
            batch: the name of its table.
            seconds: how long it may take.

        Raises:
            QueryError: it cannot be run, or takes too long, or too much.
        """
        import duckdb
        import pyarrow as pa

        query = self._settings.query
        try:
            with self._limited(seconds):
                self._open_files()
                self._connection.register(batch, rows)
                relation = self._connection.sql(query)
                kinds = [str(kind) for kind in relation.types]
                if any(map(_ODD_TYPES.search, kinds)):
                    relation = relation.project(_cast_odd_columns(relation))
                    kinds = [str(kind) for kind in relation.types]
                json_columns = [at for at, kind in enumerate(kinds) if kind == "JSON"]
                return Answer(self._fetch(relation), json_columns)
        except duckdb.Error as error:
            raise self._place_error(read_error(error, query), seconds) from None
        except (MemoryError, pa.ArrowMemoryError):
            raise self._too_much_memory() from None
        except (pa.ArrowException, ValueError) as error:
            raise QueryError(f"the rows of the query cannot be read: {error}") from None

    def explain(self, rows: pa.Table, batch: str, seconds: float) -> str:
        """Return DuckDB's plan of the query for a batch; see `run`."""
        import duckdb

        query = self._settings.query
        try:
            with self._limited(seconds):
                self._open_files()
                self._connection.register(batch, rows)
                plans = self._connection.execute(_EXPLAIN + query).fetchall()
        except duckdb.Error as error:
            raise read_error(error, query, _EXPLAIN) from None
        return "\n".join(str(plan) for _, plan in plans)

    def _place_error(self, error: QueryError, seconds: float) -> QueryError:
        """Return an error with its place, which DuckDB names for some errors in its plan alone."""
        import duckdb

        if not error.line:
            try:
                with self._limited(seconds):
                    self._connection.execute(_EXPLAIN + self._settings.query)
            except duckdb.Error as again:
                return read_error(again, self._settings.query, _EXPLAIN)
            except QueryError:
                pass
        return error

    def _open_files(self) -> None:
        """Make the views on files anew: a file may be another one than the last time."""
        for name, path, form in self._settings.files:
            source = f"{READERS[form]}({quote_text(escape_glob(path))})"
            self._connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {quote_name(name)} AS SELECT * FROM {source}"
            )

    def _fetch(self, relation: Any) -> Any:
        import pyarrow as pa

        settings = self._settings
        sink = pa.BufferOutputStream()
        reader = relation.to_arrow_reader(_FETCH_ROWS)
        count = 0
        with pa.ipc.new_stream(sink, reader.schema) as out:
            for rows in reader:
                count += rows.num_rows
                out.write_batch(rows)
                if count > settings.max_rows:
                    raise QueryError(
                        f"the query gives over {settings.max_rows:,} rows, which is what one "
                        "message may become (limits.messages); aggregate, or add a LIMIT"
                    )
                if sink.tell() > settings.max_bytes:
                    raise QueryError(
                        f"the rows of the query have over {settings.max_bytes:,} bytes, which is "
                        "what one message may be unpacked to (limits.bytes); aggregate, or add a "
                        "LIMIT"
                    )
        return sink.getvalue()

    def _too_much_memory(self) -> QueryError:
        return memory_error(self._settings.memory_bytes)

    @contextmanager
    def _limited(self, seconds: float) -> Iterator[None]:
        """Interrupt what runs within when its time is up."""
        import duckdb

        overdue, done = threading.Event(), threading.Event()

        def stop() -> None:
            overdue.set()
            # Between two statements there is nothing to interrupt: the next one must be, too.
            while not done.is_set():
                self._connection.interrupt()
                done.wait(_INTERRUPT_INTERVAL_S)

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        except duckdb.InterruptException:
            if not overdue.is_set():
                raise
            raise time_error(seconds) from None
        except duckdb.OutOfMemoryException:
            raise self._too_much_memory() from None
        finally:
            timer.cancel()
            done.set()
            timer.join()


def time_error(seconds: float) -> QueryError:
    """Return the error of a query that has taken too long."""
    return QueryError(
        f"the query took longer than {seconds:g} s, which is its timeout; let it read or join "
        "less, or give it more time"
    )


def memory_error(memory_bytes: int) -> QueryError:
    """Return the error of a query that needs too much memory."""
    return QueryError(
        f"the query needs more memory than its memory_limit of {memory_bytes:,} bytes; let it "
        "keep less, raise the limit, or name a temp_directory"
    )


def _cast_odd_columns(relation: Any) -> str:
    """Return the columns of a projection in which all have types of messages."""
    columns = []
    for at, (name, kind) in enumerate(zip(relation.columns, relation.types, strict=True), 1):
        if not _ODD_TYPES.search(str(kind)):
            columns.append(f"#{at} AS {quote_name(name)}")
            continue
        target = "VARCHAR" if kind.id in _TEXT_TYPES else "JSON"
        columns.append(f"CAST(#{at} AS {target}) AS {quote_name(name)}")
    return ", ".join(columns)


def quote_name(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def escape_glob(path: str) -> str:
    """Return the pattern that only this path matches."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)


def read_settings(fields: Mapping[str, Any]) -> SessionSettings:
    """Return settings that JSON has brought."""
    files = tuple(TableFile(*one) for one in fields["files"])
    return SessionSettings(**{**fields, "files": files})
