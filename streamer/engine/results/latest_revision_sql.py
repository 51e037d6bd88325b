"""SQL for the latest revision of each window's rows.

An emission of a window takes the place of those before it, but for `forward`, where each brings
other messages of the window. The bounds of a session move: it is all windows of its key that
overlap, since two sessions never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from streamer.engine.results.layout import RetentionRules

KEY_COLUMNS: Final = "key, key_json, branch"
"""Whose windows they are."""


def files_sql(paths: Iterable[Path]) -> str:
    """Return a list of files as `read_parquet` takes it."""
    return "[" + ", ".join(quote_sql(escape_glob(path)) for path in paths) + "]"


def escape_glob(path: Path) -> str:
    """Return the pattern that only this path matches: a directory may be called anything."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path))


def quote_sql(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def time_sql(ns: int) -> str:
    """Return a time, ns, as SQL has it."""
    return f"make_timestamp_ns({max(min(ns, 2**63 - 2), -(2**63) + 2)})"


def rows_sql(paths: Sequence[Path], conditions: Iterable[str]) -> str:
    """Return the rows of files for which all conditions hold."""
    where = " AND ".join(conditions)
    return f"SELECT * FROM read_parquet({files_sql(paths)}) WHERE {where}"


def ranked_sql(rows: str, rules: RetentionRules) -> str:
    """Return rows with three columns more.

    These are `revision`, counted from 1 over all emissions of a window that there ever were;
    `total`, how many there were; and `latest`, whether the row is of those that count.

    Args:
        rows: a query of rows, with those of all emissions of each window.
        rules: the stream's.
    """
    source = f"({rows})"
    window = f"{KEY_COLUMNS}, window_start, window_end"
    if rules.sessions:
        window = f"{KEY_COLUMNS}, island"
        source = f"""(
            SELECT *, count(*) FILTER (apart) OVER (
                PARTITION BY {KEY_COLUMNS} ORDER BY window_start, window_end
            ) AS island FROM (
                SELECT *, window_start > max(window_end) OVER (
                    PARTITION BY {KEY_COLUMNS} ORDER BY window_start, window_end
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS apart FROM {source}
            )
        )"""
    count = "sum(CASE WHEN part = 0 THEN 1 + earlier ELSE 0 END)"
    # All in one order, so that one sort does: it costs most of the time.
    return f"""
        SELECT * EXCLUDE (last_epoch, last_ordinal),
            emit = 'forward' OR (epoch = last_epoch AND ordinal = last_ordinal) AS latest
        FROM (
            SELECT *,
                CAST({count} OVER so_far AS BIGINT) AS revision,
                CAST({count} OVER whole AS BIGINT) AS total,
                last_value(epoch) OVER whole AS last_epoch,
                last_value(ordinal) OVER whole AS last_ordinal
            FROM {source}
            WINDOW so_far AS (PARTITION BY {window} ORDER BY epoch, ordinal),
                whole AS (
                    PARTITION BY {window} ORDER BY epoch, ordinal
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                )
        )
    """
