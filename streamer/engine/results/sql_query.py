"""Query results in SQL: one SELECT, which sees the results and nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.engine.results.duckdb_sandbox import QUERY_TIMEOUT_S, open_sandbox
from streamer.engine.results.latest_revision_sql import ranked_sql, rows_sql
from streamer.engine.results.layout import Layout, LayoutSnapshot
from streamer.engine.results.query import answer_from_snapshot, row_conditions, select_files
from streamer.engine.results.query_model import ResultQuery, ResultQueryError
from streamer.engine.results.rows import FILE_SCHEMA

MAX_SQL_CHARACTERS: Final = 64 << 10
"""Characters that a statement has at most."""

MAX_ROWS: Final = 10_000
_MAX_BYTES: Final = 16 << 20
_FETCH_ROWS: Final = 200
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
) -> SqlTable:
    """Run a SELECT over the view `results`.

    Args:
        directory: the results' directory.
        sql: one statement of DuckDB's SQL.
        now: the time of day, Unix ns.
        revisions: `results` has all revisions that there still are; else the latest only.
        limit: how many rows at most.
        seconds: how long it may take.

    Raises:
        QuestionError: the statement is wrong, or none that may be run, or took too much.
        RetentionError: there are no results in this directory, or they cannot be read.
    """
    import duckdb

    if len(sql) > MAX_SQL_CHARACTERS:
        raise ResultQueryError(
            f"the statement has {len(sql):,} characters, expected {MAX_SQL_CHARACTERS:,}"
        )

    def answer(snapshot: LayoutSnapshot, cutoff: int) -> SqlTable:
        paths = select_files(snapshot, Layout(directory), cutoff)
        with open_sandbox(paths, seconds) as connection:
            _check_statement(connection, sql)
            connection.execute(_view_sql(snapshot, paths, cutoff, revisions))
            try:
                connection.execute(sql)
                return _fetch_table(connection, limit)
            except (duckdb.InterruptException, duckdb.OutOfMemoryException):
                raise
            except duckdb.IOException as e:
                if any(str(path) in str(e) for path in paths):
                    raise
                raise ResultQueryError(_error_text(e, directory)) from None
            except duckdb.Error as e:
                raise ResultQueryError(_error_text(e, directory)) from None

    return answer_from_snapshot(directory, now, answer)


def _check_statement(connection: Any, sql: str) -> None:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as e:
        raise ResultQueryError(_error_text(e, None)) from None
    if len(statements) != 1:
        raise ResultQueryError(f"expected one SELECT, found {len(statements)} statements")
    kind = statements[0].type
    if kind != duckdb.StatementType.SELECT:
        raise ResultQueryError(
            f"expected a SELECT over results, found a statement of the kind {kind.name}; results "
            "are read only"
        )


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


def _fetch_table(connection: Any, limit: int) -> SqlTable:
    columns = tuple(column[0] for column in connection.description or ())
    rows: list[tuple[Any, ...]] = []
    size = 0
    while some := connection.fetchmany(_FETCH_ROWS):
        for row in some:
            if len(rows) == limit or size > _MAX_BYTES:
                return SqlTable(columns, tuple(rows), cut=True)
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            rows.append(row)
    return SqlTable(columns, tuple(rows))


def _error_text(error: Exception, directory: Path | None) -> str:
    """Return what is wrong with a statement, without where on this machine the results are."""
    text = str(error)
    if directory is not None:
        text = text.replace(str(directory), "…")
    text = text.replace(os.path.expanduser("~"), "~")
    return f"the statement cannot be run: {text.strip()}"
