"""Query results in SQL: one SELECT, which sees the results and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.connectors.duckdb.child_process import (
    ChildAbandonedError,
    ChildEndedError,
    ChildProcess,
    ChildTimeoutError,
)
from streamer.connectors.duckdb.errors import QueryError
from streamer.engine.results.duckdb_sandbox import QUERY_TIMEOUT_S, time_error_text
from streamer.engine.results.latest_revision_sql import ranked_sql, rows_sql
from streamer.engine.results.layout import Layout, LayoutSnapshot
from streamer.engine.results.query import answer_from_snapshot, row_conditions, select_files
from streamer.engine.results.query_model import ResultQuery, ResultQueryError
from streamer.engine.results.rows import FILE_SCHEMA
from streamer.engine.results.select_server import MAX_ANSWER_BYTES, MEMORY_ERROR
from streamer.engine.results.sql_cells import decode_row

MAX_SQL_CHARACTERS: Final = 64 << 10
"""Characters that a statement has at most."""

MAX_ROWS: Final = 10_000
_START_TIMEOUT_S: Final = 30.0
_GRACE_S: Final = 1.0
"""How long a statement may go on after its interruption before its process is ended."""

_SERVER: Final = "streamer.engine.results.select_server"
_VISIBLE_COLUMNS: Final = (
    "key, key_json, window_start, window_end, emitted_at, emit, revision, part, content, bytes, "
    "metadata, error"
)


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table.

    Attributes:
        columns: the names.
        rows: the rows, whose values are Python's own.
        cut: whether there are more rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool = False


def run_select(
    directory: Path,
    sql: str,
    now: int,
    *,
    revisions: bool = False,
    limit: int = MAX_ROWS,
    seconds: float = QUERY_TIMEOUT_S,
    is_abandoned: Callable[[], bool] = lambda: False,
) -> SqlTable:
    """Run a SELECT over the view `results`, in a process of its own.

    Args:
        directory: the results' directory.
        sql: one statement of DuckDB's SQL.
        now: the time of day, Unix ns.
        revisions: `results` has all revisions that there still are; else the latest only.
        limit: how many rows at most.
        seconds: how long it may take.
        is_abandoned: returns whether nobody waits for the rows any more.

    Raises:
        ResultQueryError: the statement is wrong, or none that may be run, or took too much.
        RetentionError: there are no results in this directory, or they cannot be read.
    """
    if len(sql) > MAX_SQL_CHARACTERS:
        raise ResultQueryError(
            f"the statement has {len(sql):,} characters, expected {MAX_SQL_CHARACTERS:,}"
        )

    def answer(snapshot: LayoutSnapshot, cutoff: int) -> SqlTable:
        paths = select_files(snapshot, Layout(directory), cutoff)
        request = {
            "do": "select",
            "paths": [str(path) for path in paths],
            "view": _view_sql(snapshot, paths, cutoff, revisions),
            "sql": sql,
            "limit": limit,
            "seconds": seconds,
        }
        return _run_process(request, directory, is_abandoned)

    return answer_from_snapshot(directory, now, answer)


def _run_process(
    request: dict[str, Any], directory: Path, is_abandoned: Callable[[], bool]
) -> SqlTable:
    """Return the rows of a statement, which a process is started for.

    Raises:
        ResultQueryError: see `run_select`.
        OSError: a file of the results cannot be read.
    """
    seconds: float = request["seconds"]
    process = ChildProcess(_SERVER)
    try:
        process.start()
        # The clock of the statement begins when the process is there.
        process.request({"do": "open"}, seconds=_START_TIMEOUT_S, is_abandoned=is_abandoned)
        header, body = process.request(
            request,
            seconds=seconds + _GRACE_S,
            max_bytes=MAX_ANSWER_BYTES,
            is_abandoned=is_abandoned,
        )
    except ChildTimeoutError:
        raise ResultQueryError(time_error_text(seconds)) from None
    except ChildAbandonedError:
        raise ResultQueryError("nobody waits for the answer any more") from None
    except ChildEndedError as ended:
        raise ResultQueryError(f"{MEMORY_ERROR} (its process has ended: {ended.how})") from None
    except QueryError as error:
        raise ResultQueryError(str(error)) from None
    finally:
        process.end()
    if "refused" in header:
        raise ResultQueryError(_hide_places(header["refused"], directory))
    if "failed" in header:
        raise OSError(header["failed"])
    try:
        rows = tuple(map(decode_row, bytes(body).splitlines()))
    except ValueError as error:
        raise ResultQueryError(f"the rows of the answer cannot be read: {error}") from None
    return SqlTable(tuple(header["columns"]), rows, bool(header["cut"]))


def _view_sql(snapshot: LayoutSnapshot, paths: Sequence[Path], cutoff: int, revisions: bool) -> str:
    if paths:
        rows, _ = row_conditions(cutoff, ResultQuery())
        source = ranked_sql(rows_sql(paths, rows), snapshot.manifest.rules)
    else:
        columns = ", ".join(
            f"CAST(NULL AS {_sql_type(field.type)}) AS {field.name}" for field in FILE_SCHEMA
        )
        source = f"SELECT {columns}, 1 AS revision, true AS latest WHERE false"
    which = "true" if revisions else "latest"
    return f"CREATE TEMP VIEW results AS SELECT {_VISIBLE_COLUMNS} FROM ({source}) WHERE {which}"


def _sql_type(arrow: Any) -> str:
    names = {"string": "VARCHAR", "binary": "BLOB", "int32": "INTEGER", "int64": "BIGINT"}
    return names.get(str(arrow), "TIMESTAMP_NS")


def _hide_places(text: str, directory: Path) -> str:
    """Return what is wrong with a statement, without where on this machine the results are."""
    return text.replace(str(directory), "…").replace(os.path.expanduser("~"), "~")
