"""Results for those who ask by a URL: parameters in, what goes out as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from streamer.engine.results.duckdb_sandbox import QUERY_TIMEOUT_S
from streamer.engine.results.json_cells import to_json_value
from streamer.engine.results.query import find_results
from streamer.engine.results.query_model import DEFAULT_RESULTS, ResultQuery, ResultQueryError
from streamer.engine.results.query_times import parse_time
from streamer.engine.results.sql_query import SqlTable, run_select

PARAMETERS: Final[Mapping[str, str]] = {
    "key": "The windows of this key, as window_key shows it, or as JSON.",
    "from": "Windows that start at or after this: RFC 3339, or Unix seconds.",
    "to": "Windows that end at or before this.",
    "revisions": "`latest`, what came out of each window last, or `all` that there still is.",
    "order": "`oldest` windows first, by their ends (the default), or `newest`.",
    "limit": "How many results at most, 1 to 10000.",
    "after": "Goes on behind a page: the `next` of its answer.",
    "sql": "A SELECT of DuckDB over the table results, instead of key, from, to, order, after.",
}
"""What may be asked, and what it means."""


def answer_query(
    directory: Path,
    parameters: Mapping[str, str],
    now: int,
    seconds: float = QUERY_TIMEOUT_S,
    is_abandoned: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Answer a request.

    Args:
        directory: the results' directory, `results` in a checkpoint.
        parameters: of the URL, decoded: see `PARAMETERS`.
        now: the time of day, Unix ns.
        seconds: how long it may take.
        is_abandoned: returns whether who asks is gone; then a statement of SQL is ended.

    Returns:
        What `value.dump_json` writes: `results`, each as `Result.plain`, and `next`, which is null
        at the end; with `sql`, `columns`, `rows`, and whether the answer was `cut`.

    Raises:
        QuestionError: what is asked is wrong (400), or took too long or too much.
        NoResultsError: there are no results of the stream (404).
        RetentionError: they cannot be read (500).
    """
    if "sql" in parameters:
        table = run_sql(directory, parameters, now, seconds, is_abandoned)
        rows = [[to_json_value(value) for value in row] for row in table.rows]
        return {"columns": list(table.columns), "rows": rows, "cut": table.cut}
    page = find_results(directory, parse_query(parameters), now, seconds)
    return {
        "results": [result.to_json_values() for result in page.results],
        "next": page.next or None,
    }


def parse_query(parameters: Mapping[str, str]) -> ResultQuery:
    """Return the query that the parameters of a URL are, without `sql`.

    Raises:
        ResultQueryError: one is wrong.
    """
    has_revisions, limit = _parse_common(parameters)
    order = parameters.get("order", "oldest")
    if order not in ("oldest", "newest"):
        raise ResultQueryError(f"order is {order[:40]!r}, expected oldest or newest")
    return ResultQuery(
        parameters.get("key"),
        _parse_time(parameters, "from"),
        _parse_time(parameters, "to"),
        has_revisions,
        limit,
        parameters.get("after", ""),
        order == "newest",
    )


def run_sql(
    directory: Path,
    parameters: Mapping[str, str],
    now: int,
    seconds: float = QUERY_TIMEOUT_S,
    is_abandoned: Callable[[], bool] = lambda: False,
) -> SqlTable:
    """Run the statement `sql` of a URL's parameters; see `answer_query`."""
    has_revisions, limit = _parse_common(parameters)
    beside = [name for name in ("key", "from", "to", "after", "order") if name in parameters]
    if beside:
        raise ResultQueryError(f"sql says itself which results: leave out {', '.join(beside)}")
    problem = ResultQuery(limit=limit).find_problem()
    if problem is not None:
        raise ResultQueryError(problem)
    return run_select(
        directory,
        parameters["sql"],
        now,
        revisions=has_revisions,
        limit=limit,
        seconds=seconds,
        is_abandoned=is_abandoned,
    )


def _parse_common(parameters: Mapping[str, str]) -> tuple[bool, int]:
    """Return whether all revisions are asked for, and how many results."""
    unknown = sorted(set(parameters) - set(PARAMETERS))
    if unknown:
        raise ResultQueryError(f"{unknown[0]} is not a parameter, expected {', '.join(PARAMETERS)}")
    revisions = parameters.get("revisions", "latest")
    if revisions not in ("latest", "all"):
        raise ResultQueryError(f"revisions is {revisions[:40]!r}, expected latest or all")
    return revisions == "all", _parse_limit(parameters.get("limit", str(DEFAULT_RESULTS)))


def _parse_time(parameters: Mapping[str, str], name: str) -> int | None:
    return parse_time(name, parameters[name]) if name in parameters else None


def _parse_limit(text: str) -> int:
    # Long texts of digits are no numbers that anybody means.
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ResultQueryError(f"limit is {text[:40]!r}, expected a number from 1 to 10000")
    return int(text)
