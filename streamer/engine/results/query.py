"""Read the results of a stream, while it runs or not: by key and time, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from streamer.engine.results.duckdb_sandbox import QUERY_TIMEOUT_S, open_sandbox
from streamer.engine.results.latest_revision_sql import quote_sql, ranked_sql, rows_sql, time_sql
from streamer.engine.results.layout import (
    Layout,
    LayoutSnapshot,
    NoResultsError,
    RetentionError,
    take_snapshot,
)
from streamer.engine.results.query_model import (
    MAX_RESULTS,
    ResultPage,
    ResultQuery,
    ResultQueryError,
    WindowResult,
    decode_cursor,
    encode_cursor,
    key_texts,
)

MAX_PAGE_BYTES: Final = 16 << 20
"""Bytes of contents after which a page ends, however few results it has."""

_MAX_ATTEMPTS: Final = 5
_FETCH_ROWS: Final = 200
_WINDOW_PARTS: Final = ("epoch_ns(window_end)", "epoch_ns(window_start)", "coalesce(key_json, '')")
_WINDOW: Final = ", ".join(_WINDOW_PARTS)
_WITHIN: Final = "coalesce(branch, -1), epoch, ordinal, part"
_PLACE: Final = f"{_WINDOW}, {_WITHIN}"
_COLUMNS: Final = (
    f"{_PLACE}, key_json, epoch_ns(emitted_at), emit, revision, coalesce(encode(content), bytes), "
    "coalesce(metadata, '{}'), error"
)
Answer = TypeVar("Answer")


def find_results(
    directory: Path,
    query: ResultQuery,
    now: int,
    seconds: float = QUERY_TIMEOUT_S,
) -> ResultPage:
    """Return a page of results.

    Args:
        directory: the results' directory, `results` in a checkpoint.
        query: which.
        now: the time of day, Unix ns: what is older than the retention is not shown.
        seconds: how long it may take.

    Raises:
        QuestionError: the question is wrong, or the answer took too long.
        NoResultsError: there are no results in this directory.
        RetentionError: they cannot be read.
    """
    problem = query.find_problem()
    if problem is not None:
        raise ResultQueryError(problem)
    place = decode_cursor(query.after, query.newest_first) if query.after else None

    def answer(snapshot: LayoutSnapshot, cutoff: int) -> ResultPage:
        paths = select_files(snapshot, Layout(directory), cutoff, query)
        if not paths:
            return ResultPage(())
        with open_sandbox(paths, seconds) as connection:
            return _read_page(connection, snapshot, paths, cutoff, query, place)

    return answer_from_snapshot(directory, now, answer)


def iterate_results(directory: Path, query: ResultQuery, now: int) -> Iterator[WindowResult]:
    """Give all results, page after page; `limit` and `after` of the question do not matter.

    A result that is written while the pages are read may be missing. Raises as `find`.
    """
    query = replace(query, limit=MAX_RESULTS, after="")
    while True:
        page = find_results(directory, query, now)
        yield from page.results
        if not page.next:
            return
        query = replace(query, after=page.next)


def answer_from_snapshot(
    directory: Path, now: int, answer: Callable[[LayoutSnapshot, int], Answer]
) -> Answer:
    """Answer a question on what counts now.

    Args:
        directory: the results' directory.
        now: the time of day, Unix ns.
        answer: is given what counts, and at or before which end windows have expired, ns.

    Raises:
        RetentionError: there are no results in this directory, or they cannot be read.
    """
    import duckdb

    from streamer.engine.results.compaction import read_window_ends

    layout = Layout(directory)
    for attempt in range(_MAX_ATTEMPTS):
        snapshot = take_snapshot(layout)
        if snapshot is None:
            raise NoResultsError(directory)
        try:
            newest = [read_window_ends(path)[1] for path in snapshot.new]
            if snapshot.manifest.newest is not None:
                newest.append(snapshot.manifest.newest)
            cutoff = snapshot.manifest.rules.cutoff(now, max(newest, default=None))
            return answer(snapshot, cutoff)
        except duckdb.OutOfMemoryException:
            raise ResultQueryError(
                "the answer takes more memory than it may; ask for less: one key, a shorter time"
            ) from None
        except (OSError, duckdb.Error) as e:
            # Who looks very long finds files gone that were compacted meanwhile.
            if attempt == _MAX_ATTEMPTS - 1:
                text = " ".join(str(e).split())
                raise RetentionError(f"the results in {directory} cannot be read: {text}") from None
    raise AssertionError("unreachable")


def select_files(
    snapshot: LayoutSnapshot,
    layout: Layout,
    cutoff: int,
    query: ResultQuery = ResultQuery(),  # noqa: B008
) -> list[Path]:
    """Return the files in which an answer may be."""
    files = [file for file in snapshot.manifest.files if file.last > cutoff]
    if not snapshot.manifest.rules.sessions:
        since, until = query.since, query.until
        files = [
            file
            for file in files
            if (since is None or file.last >= since) and (until is None or file.first <= until)
        ]
    return [*(layout.files / file.name for file in files), *snapshot.new]


def row_conditions(cutoff: int, query: ResultQuery) -> tuple[list[str], list[str]]:
    """Return what must hold of rows, and of the windows that they are of."""
    rows = [f"window_end > {time_sql(cutoff)}"]
    if query.key is not None:
        texts = ", ".join(map(quote_sql, key_texts(query.key)))
        rows.append(f"key IN ({texts})")
    bounds = []
    if query.since is not None:
        bounds.append(f"window_start >= {time_sql(query.since)}")
    if query.until is not None:
        bounds.append(f"window_end <= {time_sql(query.until)}")
    return rows, bounds


def _read_page(
    connection: Any,
    snapshot: LayoutSnapshot,
    paths: Sequence[Path],
    cutoff: int,
    query: ResultQuery,
    place: Sequence[Any] | None,
) -> ResultPage:
    """Return a page: of all windows in the order of their ends, only the first are looked at."""
    rows, bounds = row_conditions(cutoff, query)
    if snapshot.manifest.rules.sessions or query.key is not None:
        # The windows of a key are few, and stand together.
        rows += [] if snapshot.manifest.rules.sessions else bounds
        connection.execute(_page_sql(snapshot, paths, rows, bounds, query, place))
        return _fetch_page(connection, query)
    # The revisions of a window have its bounds; those of a session have their own.
    rows += bounds
    if place is not None:
        rows.append(f"window_end {'<=' if query.newest_first else '>='} {time_sql(place[0])}")
    count = query.limit + 1
    before = ">=" if query.newest_first else "<="
    while True:
        reached = _last_window(connection, rows_sql(paths, rows), place, count, query.newest_first)
        until = [] if reached is None else [f"({_WINDOW}) {before} ({reached})"]
        connection.execute(_page_sql(snapshot, paths, [*rows, *until], [], query, place))
        page = _fetch_page(connection, query)
        if page.next or reached is None:
            return page
        # What is left of so many rows, without the revisions that do not count, is too little.
        count *= 8


def _last_window(
    connection: Any, rows: str, place: Sequence[Any] | None, count: int, newest_first: bool
) -> str | None:
    """Return the window of the last of so many rows; None when there are no more than these."""
    comparison, order = ("<=", "DESC") if newest_first else (">=", "ASC")
    behind = "true" if place is None else f"({_WINDOW}) {comparison} ({_sql_values(place[:3])})"
    last = connection.execute(
        f"SELECT epoch_ns(window_end), epoch_ns(window_start), coalesce(key_json, '') FROM ({rows})"
        f" WHERE {behind} ORDER BY ALL {order} LIMIT 1 OFFSET {count}"
    ).fetchall()
    return _sql_values(last[0]) if last else None


def _sql_values(place: Sequence[Any]) -> str:
    return ", ".join(quote_sql(one) if isinstance(one, str) else str(one) for one in place)


def _page_sql(
    snapshot: LayoutSnapshot,
    paths: Sequence[Path],
    rows: Sequence[str],
    bounds: Sequence[str],
    query: ResultQuery,
    place: Sequence[Any] | None,
) -> str:
    outer = [*bounds]
    if not query.revisions:
        outer.append("latest")
    if place is not None:
        outer.append(_behind_sql(place, query.newest_first))
    where = " AND ".join(outer) or "true"
    # Newest first, too, a window's messages are in their order: so a page that ends within a
    # window loses none of a revision that comes before the next page is read.
    order = f"{_descending(_WINDOW_PARTS)}, {_WITHIN}" if query.newest_first else _PLACE
    return (
        f"SELECT {_COLUMNS} FROM ({ranked_sql(rows_sql(paths, rows), snapshot.manifest.rules)}) "
        f"WHERE {where} ORDER BY {order} LIMIT {query.limit + 1}"
    )


def _behind_sql(place: Sequence[Any], newest_first: bool) -> str:
    """Return the condition of the rows that come after a place."""
    if not newest_first:
        return f"({_PLACE}) > ({_sql_values(place)})"
    window, within = _sql_values(place[:3]), _sql_values(place[3:])
    later = f"({_WINDOW}) = ({window}) AND ({_WITHIN}) > ({within})"
    return f"(({_WINDOW}) < ({window}) OR ({later}))"


def _descending(columns: Sequence[str]) -> str:
    return ", ".join(f"{column} DESC" for column in columns)


def _fetch_page(connection: Any, query: ResultQuery) -> ResultPage:
    results: list[WindowResult] = []
    size = 0
    place: Sequence[int | str] = ()
    while rows := connection.fetchmany(_FETCH_ROWS):
        for row in rows:
            if len(results) == query.limit or size > MAX_PAGE_BYTES:
                return ResultPage(tuple(results), encode_cursor(place, query.newest_first))
            place = row[:7]
            end, start, _, _, _, _, part, key, emitted_at, emit, revision, raw, meta, error = row
            size += len(raw) + len(meta)
            results.append(
                WindowResult(key, start, end, emitted_at, emit, revision, part, raw, meta, error)
            )
    return ResultPage(tuple(results))
