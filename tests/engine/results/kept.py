"""Results for tests: written as workers and the driver write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from streamer.core.durations import DAY, SECOND
from streamer.engine.results.layout import RetentionRules
from streamer.engine.results.query import iterate_results
from streamer.engine.results.query_model import ResultQuery, WindowResult
from streamer.engine.results.result_store import ResultStore
from streamer.engine.results.rows import encode_rows

T = 1_700_000_000 * SECOND
RULES = RetentionRules(7 * DAY, follows=True)


class Row(NamedTuple):
    """A message of a window's result."""

    key: Any = None
    end: int = T
    content: bytes = b"{}"
    start: int | None = None
    emit: str = "final"
    ordinal: int = 0
    part: int = 0
    metadata: str | None = None
    error: str | None = None


def portion(rows: Sequence[Row]) -> bytes:
    """Return rows as a worker sends them; each is an emission, unless it says otherwise."""
    texts = [None if row.key is None else _text(row.key) for row in rows]
    return encode_rows(
        (
            texts,
            [None if row.key is None else json.dumps(row.key) for row in rows],
            [None] * len(rows),
            [row.end - 10 * SECOND if row.start is None else row.start for row in rows],
            [row.end for row in rows],
            [row.emit for row in rows],
            [row.ordinal or number for number, row in enumerate(rows)],
            [row.part for row in rows],
            [row.content for row in rows],
            [row.metadata for row in rows],
            [row.error for row in rows],
        )
    )


def _text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def store(directory: Path, rules: RetentionRules = RULES, **options: Any) -> ResultStore:
    """Return a store that compacts at once, in the caller's thread."""
    options = {"afresh": True, "run_in_background": lambda work: work(), **options}
    return ResultStore(directory, rules, **options)


def keep(directory: Path, *rows: Row) -> None:
    """Write results in one micro-batch."""
    store(directory).write(0, [portion(rows)], T)


def read(directory: Path, now: int = T, **asked: Any) -> list[WindowResult]:
    """Return all results."""
    return list(iterate_results(directory, ResultQuery(**asked), now))


def contents(directory: Path, now: int = T, **asked: Any) -> list[Any]:
    """Return the documents of all results."""
    return [json.loads(result.content) for result in read(directory, now, **asked)]
