"""Results for those who ask by a URL: parameters in, what goes out as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamer.engine.results.duckdb_sandbox import QUERY_TIMEOUT_S
from streamer.engine.results.json_cells import to_json_value
from streamer.engine.results.query import find_results
from streamer.engine.results.query_model import DEFAULT_RESULTS, ResultQuery, ResultQueryError
from streamer.engine.results.query_times import parse_time
from streamer.engine.results.sql_query import run_select

PARAMETERS: Final[Mapping[str, str]] = {
    "key": "The windows of this key, as window_key shows it, or as JSON.",
    "from": "Windows that start at or after this: RFC 3339, or Unix seconds.",
    "to": "Windows that end at or before this.",
    "revisions": "`latest`, what came out of each window last, or `all` that there still is.",
    "limit": "How many results at most, 1 to 10000.",
    "after": "Goes on behind a page: the `next` of its answer.",
    "sql": "A SELECT of DuckDB's over the table results, instead of key, from, to and after.",
}
"""What may be asked, and what it means."""


def answer_query(
    directory: Path, parameters: Mapping[str, str], now: int, seconds: float = QUERY_TIMEOUT_S
) -> dict[str, Any]:
    """Answer a request.

    Args:
        directory: the results' directory, `results` in a checkpoint.
        parameters: of the URL, decoded: see `PARAMETERS`.
        now: the time of day, Unix ns.
        seconds: how long it may take.

    Returns:
        What `value.dump_json` writes: `results`, each as `Result.plain`, and `next`, which is null
        at the end; with `sql`, `columns`, `rows`, and whether the answer was `cut`.

    Raises:
        QuestionError: what is asked is wrong (400), or took too long or too much.
        NoResultsError: there are no results of the stream (404).
        RetentionError: they cannot be read (500).
    """
    unknown = sorted(set(parameters) - set(PARAMETERS))
    if unknown:
        raise ResultQueryError(f"{unknown[0]} is no parameter, expected {', '.join(PARAMETERS)}")
    revisions = parameters.get("revisions", "latest")
    if revisions not in ("latest", "all"):
        raise ResultQueryError(f"revisions is {revisions[:40]!r}, expected latest or all")
    limit = _parse_limit(parameters.get("limit", str(DEFAULT_RESULTS)))
    if "sql" in parameters:
        return _run_sql(directory, parameters, revisions == "all", limit, now, seconds)
    question = ResultQuery(
        parameters.get("key"),
        _parse_time(parameters, "from"),
        _parse_time(parameters, "to"),
        revisions == "all",
        limit,
        parameters.get("after", ""),
    )
    page = find_results(directory, question, now, seconds)
    return {
        "results": [result.to_json_values() for result in page.results],
        "next": page.next or None,
    }


def _run_sql(
    directory: Path,
    parameters: Mapping[str, str],
    revisions: bool,
    limit: int,
    now: int,
    seconds: float,
) -> dict[str, Any]:
    beside = [name for name in ("key", "from", "to", "after") if name in parameters]
    if beside:
        raise ResultQueryError(f"sql says itself which results: leave out {', '.join(beside)}")
    problem = ResultQuery(limit=limit).find_problem()
    if problem is not None:
        raise ResultQueryError(problem)
    sql = parameters["sql"]
    table = run_select(directory, sql, now, revisions=revisions, limit=limit, seconds=seconds)
    rows = [[to_json_value(value) for value in row] for row in table.rows]
    return {"columns": list(table.columns), "rows": rows, "cut": table.cut}


def _parse_time(parameters: Mapping[str, str], name: str) -> int | None:
    return parse_time(name, parameters[name]) if name in parameters else None


def _parse_limit(text: str) -> int:
    # Long texts of digits are no numbers that anybody means.
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ResultQueryError(f"limit is {text[:40]!r}, expected a number from 1 to 10000")
    return int(text)
