"""Rows of open windows, as the service shows them: those of shards put together, and chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.window_questions import Answer
from streamer.window.inspect.window_query import (
    MAX_ROWS,
    WindowListing,
    WindowQuery,
    WindowRow,
    rank_rows,
)
from streamer.window.settings.window import Window

_MIN_TIME_NS: Final = -(2**63)
DEFAULT_QUERY: Final = WindowQuery(limit=MAX_ROWS)


class SelectedWindows(NamedTuple):
    """The windows that a question is answered with.

    Attributes:
        rows: the windows, in the order of the question.
        total: how many match it, as far as they are known.
        is_complete: whether there is no other that matches.
        at: when the answer came, Unix ns; None for the newest micro-batch.
        contents: what is in them, where that was asked.
    """

    rows: list[WindowRow]
    total: int
    is_complete: bool
    at: int | None
    contents: list[dict[str, Any]]


def select_windows(
    window: Window,
    statuses: Iterable[Mapping[str, Any]],
    query: WindowQuery,
    answer: Answer | None = None,
    buffer: str = "",
) -> SelectedWindows:
    """Answer a question by what the shards of a buffer have reported.

    Args:
        window: the windows' settings.
        statuses: of its shards.
        query: the question.
        answer: what shards have answered to just this question; None where nobody has asked.
        buffer: label of the buffer, where there are several.
    """
    known = list(statuses)
    usual = _usual_windows(window, known, query)
    answers = [] if answer is None else [one for one in answer.shards if one.buffer == buffer]
    if answer is None or not answers or (usual.is_complete and not query.has_content):
        return usual
    rows = merge_rows(row for one in answers for row in one.listing.rows)
    contents = [content for one in answers for content in one.contents]
    return SelectedWindows(
        rank_rows(rows, query.by, query.limit),
        max(len(rows), sum(one.listing.total for one in answers)),
        all(one.listing.is_complete for one in answers),
        answer.at,
        contents,
    )


def _usual_windows(
    window: Window, statuses: list[Mapping[str, Any]], query: WindowQuery
) -> SelectedWindows:
    """Answer a question by what each micro-batch reports though nobody has asked."""
    listed: list[WindowRow] = []
    total, is_complete = 0, True
    for status in statuses:
        if window.strategy == "panes":
            listed += _grid_rows(window, status)
        elif (fields := status.get("listing")) is not None:
            listing = WindowListing.from_dict(fields)
            listed += listing.rows
            total += listing.total
            is_complete &= listing.is_complete and len(listing.rows) == listing.total
        else:
            is_complete = not status.get("open_windows")
    rows = [
        row
        for row in merge_rows(listed)
        if query.matches(row.key) and query.start in (None, row.start)
    ]
    if window.strategy == "panes":
        # Which keys are in them is known only when somebody asks.
        total, is_complete = len(rows), query.key is None and not query.lists_keys
    elif query.key is not None or query.start is not None:
        total = len(rows)
    return SelectedWindows(rank_rows(rows, query.by, query.limit), total, is_complete, None, [])


def _grid_rows(window: Window, status: Mapping[str, Any]) -> list[WindowRow]:
    closes_by: Any = "event_time" if window.uses_event_time else "clock"
    return [
        WindowRow(
            *(None, one["start"], one["end"], one["messages"], one["size"]),
            closes=window.due_time(one["end"]),
            closes_by=closes_by,
        )
        for one in status.get("open", ())
    ]


def merge_rows(rows: Iterable[WindowRow]) -> list[WindowRow]:
    """Add up what several shards hold of one window; each key is in one of them."""
    merged: dict[tuple[Any, ...], WindowRow] = {}
    keyed: list[WindowRow] = []
    for row in rows:
        if row.key is not None:
            keyed.append(row)
            continue
        place = (row.start, row.end, row.side)
        before = merged.get(place)
        if before is not None:
            messages = _add_known(before.messages, row.messages)
            row = row._replace(messages=messages, size=_add_known(before.size, row.size))
        merged[place] = row
    return [*merged.values(), *keyed]


def _add_known(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def row_document(row: WindowRow) -> dict[str, Any]:
    """Return a row as the API gives it.

    Bounds are null for windows without any, bytes where nobody has counted them, and `closes` for
    windows that no time closes.
    """
    return {
        "start": format_bound(row.start),
        "end": format_bound(row.end),
        "messages": row.messages,
        "bytes": row.size,
        "closes": format_bound(row.closes),
        "key": row.key,
        "closes_by": row.closes_by,
        "closes_idle": format_bound(row.idle_at),
        "messages_missing": row.missing,
        "side": row.side,
    }


def content_document(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is in a window as the API gives it."""
    bounds = {name: format_bound(content[name]) for name in ("start", "end")}
    return {**content, **bounds}


def format_bound(at: int | None) -> str | None:
    """Return a time as the API gives it; None for none."""
    return None if at is None else format_rfc3339(max(at, _MIN_TIME_NS))
