"""Read the results of a stream, while it runs or not: by key and time, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from streamer.retention.layout import Layout, NoResultsError, RetentionError, Snapshot, snapshot
from streamer.retention.question import (
    MOST,
    Page,
    Question,
    QuestionError,
    Result,
    cursor,
    key_texts,
    place_of,
)
from streamer.retention.sandbox import SECONDS, sandbox
from streamer.retention.selection import quoted, ranked_sql, rows_sql, time_sql

PAGE_BYTES: Final = 16 << 20
"""Bytes of contents after which a page ends, however few results it has."""

_TRIES: Final = 5
_STEP: Final = 200
_WINDOW: Final = "epoch_ns(window_end), epoch_ns(window_start), coalesce(key_json, '')"
_PLACE: Final = f"{_WINDOW}, coalesce(branch, -1), epoch, ordinal, part"
_COLUMNS: Final = (
    f"{_PLACE}, key_json, epoch_ns(emitted_at), emit, revision, coalesce(encode(content), bytes), "
    "coalesce(metadata, '{}'), error"
)
Answer = TypeVar("Answer")


def find(
    directory: Path,
    question: Question,
    now: int,
    seconds: float = SECONDS,
) -> Page:
    """Return a page of results.

    Args:
        directory: the results' directory, `results` in a checkpoint.
        question: which.
        now: the time of day, Unix ns: what is older than the retention is not shown.
        seconds: how long it may take.

    Raises:
        QuestionError: the question is wrong, or the answer took too long.
        NoResultsError: there are no results in this directory.
        RetentionError: they cannot be read.
    """
    problem = question.problem()
    if problem is not None:
        raise QuestionError(problem)
    place = place_of(question.after) if question.after else None

    def answer(found: Snapshot, cutoff: int) -> Page:
        paths = paths_of(found, Layout(directory), cutoff, question)
        if not paths:
            return Page(())
        with sandbox(paths, seconds) as connection:
            return _answered(connection, found, paths, cutoff, question, place)

    return asked(directory, now, answer)


def every(directory: Path, question: Question, now: int) -> Iterator[Result]:
    """Give all results, page after page; `limit` and `after` of the question do not matter.

    A result that is written while the pages are read may be missing. Raises as `find`.
    """
    question = replace(question, limit=MOST, after="")
    while True:
        page = find(directory, question, now)
        yield from page.results
        if not page.next:
            return
        question = replace(question, after=page.next)


def asked(directory: Path, now: int, answer: Callable[[Snapshot, int], Answer]) -> Answer:
    """Answer a question on what counts now.

    Args:
        directory: the results' directory.
        now: the time of day, Unix ns.
        answer: is given what counts, and at or before which end windows have expired, ns.

    Raises:
        RetentionError: there are no results in this directory, or they cannot be read.
    """
    import duckdb

    from streamer.retention.compaction import ends_of

    layout = Layout(directory)
    for attempt in range(_TRIES):
        found = snapshot(layout)
        if found is None:
            raise NoResultsError(
                f"there are no results in {directory}; a stream keeps them whose window buffer "
                "has the field retention (retention: 7d), from its next start on"
            )
        try:
            newest = [ends_of(path)[1] for path in found.new]
            if found.manifest.newest is not None:
                newest.append(found.manifest.newest)
            cutoff = found.manifest.rules.cutoff(now, max(newest, default=None))
            return answer(found, cutoff)
        except duckdb.OutOfMemoryException:
            raise QuestionError(
                "the answer takes more memory than it may; ask for less: one key, a shorter time"
            ) from None
        except (OSError, duckdb.Error) as e:
            # Who looks very long finds files gone that were compacted meanwhile.
            if attempt == _TRIES - 1:
                text = " ".join(str(e).split())
                raise RetentionError(f"the results in {directory} cannot be read: {text}") from None
    raise AssertionError("unreachable")


def paths_of(
    found: Snapshot,
    layout: Layout,
    cutoff: int,
    question: Question = Question(),  # noqa: B008
) -> list[Path]:
    """Return the files in which an answer may be."""
    files = [file for file in found.manifest.files if file.last > cutoff]
    if not found.manifest.rules.sessions:
        since, until = question.since, question.until
        files = [
            file
            for file in files
            if (since is None or file.last >= since) and (until is None or file.first <= until)
        ]
    return [*(layout.files / file.name for file in files), *found.new]


def conditions(cutoff: int, question: Question) -> tuple[list[str], list[str]]:
    """Return what must hold of rows, and of the windows that they are of."""
    rows = [f"window_end > {time_sql(cutoff)}"]
    if question.key is not None:
        texts = ", ".join(map(quoted, key_texts(question.key)))
        rows.append(f"key IN ({texts})")
    bounds = []
    if question.since is not None:
        bounds.append(f"window_start >= {time_sql(question.since)}")
    if question.until is not None:
        bounds.append(f"window_end <= {time_sql(question.until)}")
    return rows, bounds


def _answered(
    connection: Any,
    found: Snapshot,
    paths: Sequence[Path],
    cutoff: int,
    question: Question,
    place: Sequence[Any] | None,
) -> Page:
    """Return a page: of all windows in the order of their ends, only the first are looked at."""
    rows, bounds = conditions(cutoff, question)
    if found.manifest.rules.sessions or question.key is not None:
        # The windows of a key are few, and stand together.
        rows += [] if found.manifest.rules.sessions else bounds
        connection.execute(_sql(found, paths, rows, bounds, question, place))
        return _page(connection, question.limit)
    # The revisions of a window have its bounds; those of a session have their own.
    rows += bounds
    if place is not None:
        rows.append(f"window_end >= {time_sql(place[0])}")
    count = question.limit + 1
    while True:
        reached = _reached(connection, rows_sql(paths, rows), place, count)
        until = [] if reached is None else [f"({_WINDOW}) <= ({reached})"]
        connection.execute(_sql(found, paths, [*rows, *until], [], question, place))
        page = _page(connection, question.limit)
        if page.next or reached is None:
            return page
        # What is left of so many rows, without the revisions that do not count, is too little.
        count *= 8


def _reached(connection: Any, rows: str, place: Sequence[Any] | None, count: int) -> str | None:
    """Return the window of the last of so many rows; None when there are no more than these."""
    behind = "true" if place is None else f"({_WINDOW}) >= ({_values(place[:3])})"
    found = connection.execute(
        f"SELECT epoch_ns(window_end), epoch_ns(window_start), coalesce(key_json, '') FROM ({rows})"
        f" WHERE {behind} ORDER BY ALL LIMIT 1 OFFSET {count}"
    ).fetchall()
    return _values(found[0]) if found else None


def _values(place: Sequence[Any]) -> str:
    return ", ".join(quoted(one) if isinstance(one, str) else str(one) for one in place)


def _sql(
    found: Snapshot,
    paths: Sequence[Path],
    rows: Sequence[str],
    bounds: Sequence[str],
    question: Question,
    place: Sequence[Any] | None,
) -> str:
    outer = [*bounds]
    if not question.revisions:
        outer.append("latest")
    if place is not None:
        outer.append(f"({_PLACE}) > ({_values(place)})")
    where = " AND ".join(outer) or "true"
    return (
        f"SELECT {_COLUMNS} FROM ({ranked_sql(rows_sql(paths, rows), found.manifest.rules)}) "
        f"WHERE {where} ORDER BY {_PLACE} LIMIT {question.limit + 1}"
    )


def _page(connection: Any, limit: int) -> Page:
    results: list[Result] = []
    size = 0
    place: Sequence[int | str] = ()
    while rows := connection.fetchmany(_STEP):
        for row in rows:
            if len(results) == limit or size > PAGE_BYTES:
                return Page(tuple(results), cursor(place))
            place = row[:7]
            end, start, _, _, _, _, part, key, emitted_at, emit, revision, raw, meta, error = row
            size += len(raw) + len(meta)
            results.append(
                Result(key, start, end, emitted_at, emit, revision, part, raw, meta, error)
            )
    return Page(tuple(results))
