"""Ask results in SQL: one SELECT, which sees the results and nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.retention.layout import Layout, Snapshot
from streamer.retention.query import asked, conditions, paths_of
from streamer.retention.question import Question, QuestionError
from streamer.retention.rows import ROWS
from streamer.retention.sandbox import SECONDS, sandbox
from streamer.retention.selection import ranked_sql, rows_sql

LONGEST: Final = 64 << 10
"""Characters that a statement has at most."""

MOST_ROWS: Final = 10_000
_MOST_BYTES: Final = 16 << 20
_STEP: Final = 200
_VISIBLE: Final = (
    "key, key_json, window_start, window_end, emitted_at, emit, revision, part, content, bytes, "
    "metadata, error"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A table.

    Attributes:
        columns: the names.
        rows: the rows, whose values are Python's own.
        cut: whether there are more rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool = False


def select(
    directory: Path,
    sql: str,
    now: int,
    *,
    revisions: bool = False,
    limit: int = MOST_ROWS,
    seconds: float = SECONDS,
) -> Answer:
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

    if len(sql) > LONGEST:
        raise QuestionError(f"the statement has {len(sql):,} characters, expected {LONGEST:,}")

    def answer(found: Snapshot, cutoff: int) -> Answer:
        paths = paths_of(found, Layout(directory), cutoff)
        with sandbox(paths, seconds) as connection:
            _refuse(connection, sql)
            connection.execute(_view(found, paths, cutoff, revisions))
            try:
                connection.execute(sql)
                return _answer(connection, limit)
            except (duckdb.InterruptException, duckdb.OutOfMemoryException):
                raise
            except duckdb.IOException as e:
                if any(str(path) in str(e) for path in paths):
                    raise
                raise QuestionError(_told(e, directory)) from None
            except duckdb.Error as e:
                raise QuestionError(_told(e, directory)) from None

    return asked(directory, now, answer)


def _refuse(connection: Any, sql: str) -> None:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as e:
        raise QuestionError(_told(e, None)) from None
    if len(statements) != 1:
        raise QuestionError(f"expected one SELECT, found {len(statements)} statements")
    kind = statements[0].type
    if kind != duckdb.StatementType.SELECT:
        raise QuestionError(
            f"expected a SELECT over results, found a statement of the kind {kind.name}; results "
            "are read only"
        )


def _view(found: Snapshot, paths: Sequence[Path], cutoff: int, revisions: bool) -> str:
    if paths:
        rows, _ = conditions(cutoff, Question())
        source = ranked_sql(rows_sql(paths, rows), found.manifest.rules)
    else:
        columns = ", ".join(f"CAST(NULL AS {_type(field.type)}) AS {field.name}" for field in ROWS)
        source = f"SELECT {columns}, 1 AS revision, true AS latest WHERE false"
    which = "true" if revisions else "latest"
    return f"CREATE TEMP VIEW results AS SELECT {_VISIBLE} FROM ({source}) WHERE {which}"


def _type(arrow: Any) -> str:
    names = {"string": "VARCHAR", "binary": "BLOB", "int32": "INTEGER", "int64": "BIGINT"}
    return names.get(str(arrow), "TIMESTAMP_NS")


def _answer(connection: Any, limit: int) -> Answer:
    columns = tuple(column[0] for column in connection.description or ())
    rows: list[tuple[Any, ...]] = []
    size = 0
    while some := connection.fetchmany(_STEP):
        for row in some:
            if len(rows) == limit or size > _MOST_BYTES:
                return Answer(columns, tuple(rows), cut=True)
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            rows.append(row)
    return Answer(columns, tuple(rows))


def _told(error: Exception, directory: Path | None) -> str:
    """Return what is wrong with a statement, without where on this machine the results are."""
    text = str(error)
    if directory is not None:
        text = text.replace(str(directory), "…")
    text = text.replace(os.path.expanduser("~"), "~")
    return f"the statement cannot be run: {text.strip()}"
