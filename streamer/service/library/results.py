"""Results of windows that a stream keeps, as a table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    import pyarrow as pa

    from streamer.engine.results.query_model import WindowResult

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
_NS_PER_US: Final = 1_000

Time = str | int | float | datetime
"""A time: RFC 3339, Unix seconds, or a `datetime`; one without a zone counts as UTC."""


@dataclass(frozen=True, slots=True)
class ResultSelection:
    """A selection of results.

    Attributes:
        key: the windows' key; None for all.
        since: windows start at or after this time; None for all.
        until: windows end at or before this time; None for all.
        all_revisions: all revisions of a window; else the latest one.
        newest_first: windows that end last come first.
        limit: results at most.
    """

    key: str | None = None
    since: Time | None = None
    until: Time | None = None
    all_revisions: bool = False
    newest_first: bool = False
    limit: int = 1_000


def read_time(name: str, time: Time) -> int:
    """Return a time as Unix ns.

    Args:
        name: of the parameter, for errors.
        time: the time.

    Raises:
        StreamerError: it is none.

    Example:
        >>> read_time("since", datetime(1970, 1, 1, 0, 1)) == read_time("since", 60)
        True
    """
    from streamer.core.timestamps import parse_event_time

    if isinstance(time, datetime):
        utc = time.replace(tzinfo=_EPOCH.tzinfo) if time.tzinfo is None else time
        return (utc - _EPOCH) // timedelta(microseconds=1) * _NS_PER_US
    try:
        return parse_event_time(time)
    except (ValueError, TypeError) as e:
        raise StreamerError(f"{name} is {time!r}: {e}") from None


def read_duration(name: str, duration: str | timedelta) -> int:
    """Return a duration (`10s`, or a `timedelta`) in ns.

    Args:
        name: of the parameter, for errors.
        duration: the duration.

    Raises:
        StreamerError: it is none, or negative.
    """
    from streamer.core.durations import parse_duration

    if isinstance(duration, timedelta):
        ns = duration // timedelta(microseconds=1) * _NS_PER_US
    else:
        try:
            ns = parse_duration(duration)
        except (ValueError, TypeError, AttributeError) as e:
            raise StreamerError(f"{name} is {duration!r}: {e}") from None
    if ns < 0:
        raise StreamerError(f"{name} is {duration}; expected 0s or more")
    return ns


def query_results(directory: Path, selection: ResultSelection) -> pa.Table:
    """Return results as a table, see `build_window_frame`.

    Args:
        directory: the results' directory of the checkpoint.
        selection: which of them.

    Raises:
        StreamerError: there are none, or the selection is wrong.
    """
    from streamer.engine.results.query import iterate_results
    from streamer.engine.results.query_model import ResultQuery

    if selection.limit < 0:
        raise StreamerError(f"limit is {selection.limit}; expected 0 or more")
    since, until = selection.since, selection.until
    query = ResultQuery(
        selection.key,
        None if since is None else read_time("since", since),
        None if until is None else read_time("until", until),
        selection.all_revisions,
        newest_first=selection.newest_first,
    )
    rows = islice(iterate_results(directory, query, time.time_ns()), selection.limit)
    return _make_table(list(rows))


def select_results(directory: Path, sql: str, limit: int) -> pa.Table:
    """Return the answer to a SELECT over the table `results`.

    Args:
        directory: the results' directory of the checkpoint.
        sql: the statement.
        limit: rows at most.

    Raises:
        StreamerError: there are none, or the statement is wrong.
    """
    import pyarrow as pa

    from streamer.engine.results.sql_query import run_select

    answer = run_select(directory, sql, time.time_ns(), revisions=False, limit=limit)
    columns = zip(*answer.rows, strict=True) if answer.rows else [()] * len(answer.columns)
    return pa.table([pa.array(list(column)) for column in columns], names=list(answer.columns))


def _make_table(results: Sequence[WindowResult]) -> pa.Table:
    import pyarrow as pa

    from streamer.core.json.parse import parse_json
    from streamer.core.message import Message
    from streamer.engine.results.window_frame import EmittedMessage, build_window_frame

    emitted = []
    windows = groupby(results, lambda one: (one.key, one.start, one.end, one.revision))
    for number, (_, rows) in enumerate(windows):
        for one in rows:
            meta: dict[str, Any] = {**parse_json(one.metadata.encode()), **_window_metadata(one)}
            message = Message(one.content, meta, one.error)
            extra = {"revision": one.revision}
            emitted.append(EmittedMessage(one.emitted_at, number, message, extra))
    return build_window_frame(emitted, {"revision": pa.int64()})


def _window_metadata(result: WindowResult) -> dict[str, Any]:
    from streamer.core.timestamps import format_rfc3339
    from streamer.window.pack import window_metadata as names

    meta: dict[str, Any] = {
        names.WINDOW_START: format_rfc3339(result.start),
        names.WINDOW_END: format_rfc3339(result.end),
        names.WINDOW_EMIT: result.emit,
    }
    if result.key is not None:
        meta[names.WINDOW_KEY] = names.format_key(result.key.encode())
    return meta
