"""Results for those who ask by a URL: parameters in, what goes out as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamer.retention.cells import plain
from streamer.retention.query import find
from streamer.retention.question import USUAL, Question, QuestionError
from streamer.retention.sandbox import SECONDS
from streamer.retention.statement import select
from streamer.retention.times import time_of

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


def answer(
    directory: Path, parameters: Mapping[str, str], now: int, seconds: float = SECONDS
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
        raise QuestionError(f"{unknown[0]} is no parameter, expected {', '.join(PARAMETERS)}")
    revisions = parameters.get("revisions", "latest")
    if revisions not in ("latest", "all"):
        raise QuestionError(f"revisions is {revisions[:40]!r}, expected latest or all")
    limit = _limit(parameters.get("limit", str(USUAL)))
    if "sql" in parameters:
        return _selected(directory, parameters, revisions == "all", limit, now, seconds)
    question = Question(
        parameters.get("key"),
        _time(parameters, "from"),
        _time(parameters, "to"),
        revisions == "all",
        limit,
        parameters.get("after", ""),
    )
    page = find(directory, question, now, seconds)
    return {"results": [result.plain() for result in page.results], "next": page.next or None}


def _selected(
    directory: Path,
    parameters: Mapping[str, str],
    revisions: bool,
    limit: int,
    now: int,
    seconds: float,
) -> dict[str, Any]:
    beside = [name for name in ("key", "from", "to", "after") if name in parameters]
    if beside:
        raise QuestionError(f"sql says itself which results: leave out {', '.join(beside)}")
    problem = Question(limit=limit).problem()
    if problem is not None:
        raise QuestionError(problem)
    sql = parameters["sql"]
    found = select(directory, sql, now, revisions=revisions, limit=limit, seconds=seconds)
    rows = [[plain(value) for value in row] for row in found.rows]
    return {"columns": list(found.columns), "rows": rows, "cut": found.cut}


def _time(parameters: Mapping[str, str], name: str) -> int | None:
    return time_of(name, parameters[name]) if name in parameters else None


def _limit(text: str) -> int:
    # Long texts of digits are no numbers that anybody means.
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise QuestionError(f"limit is {text[:40]!r}, expected a number from 1 to 10000")
    return int(text)
