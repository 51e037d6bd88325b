"""Answers questions about the open windows of a shard, after its step; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from streamer.window.contract import Emission, Status
from streamer.window.inspect.window_query import (
    USUAL_QUERY,
    WindowListing,
    WindowQuery,
    rank_rows,
    rank_usual_rows,
)
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import Join, TableJoin
from streamer.window.state_store import StateStore


class OpenWindows(Protocol):
    """The open windows of a shard, by the way in which it keeps them."""

    @property
    def key_count(self) -> int:
        """Number of keys that a listing looks through, about."""

    def list_windows(self, query: WindowQuery) -> WindowListing:
        """Return the windows that match a question; rows in no order."""

    def emissions(self, query: WindowQuery) -> Iterator[Emission]:
        """Give what windows with exactly the question's key and start would emit now."""


def list_usual_windows(window: Window, store: StateStore, status: Status) -> WindowListing | None:
    """Return the windows that a shard lists in every micro-batch; None where they are too many.

    Where the status does not count them, and there are too many, only the number of keys is known.

    Windows of whole panes are in the status itself. Of others all keys have to be looked at, so
    that very many of them are listed for those who ask only.

    Args:
        window: the windows' settings.
        store: the shard's state, written.
        status: of the shard, after its step.
    """
    if window.strategy == "panes" or window.passes_messages:
        return None
    if not status.held and not status.open_windows:
        return WindowListing([], 0)
    if (status.open_windows or 0) > USUAL_QUERY.max_keys:
        return None
    windows = _open_windows(window, store)
    if windows.key_count > USUAL_QUERY.max_keys:
        return WindowListing([], windows.key_count, is_complete=False)
    listing = windows.list_windows(USUAL_QUERY)
    listing.rows = rank_usual_rows(listing.rows)
    return listing


def answer_query(window: Window, store: StateStore, query: WindowQuery) -> WindowListing:
    """Return a shard's answer to a question."""
    if window.passes_messages:
        return WindowListing([], 0)
    listing = _open_windows(window, store).list_windows(query)
    listing.rows = rank_rows(listing.rows, query.by, query.limit)
    return listing


def read_contents(window: Window, store: StateStore, query: WindowQuery) -> Iterator[Emission]:
    """Give what windows with exactly the question's key and start would emit if they closed now."""
    return iter(()) if window.passes_messages else _open_windows(window, store).emissions(query)


def _open_windows(window: Window, store: StateStore) -> OpenWindows:
    # Imported here: a worker opens windows of one kind.
    if not isinstance(window, EventWindow) or window.strategy == "panes":
        from streamer.window.inspect.pane_windows import PaneWindows

        return PaneWindows(window, store)
    if isinstance(window.kind, Join):
        from streamer.window.inspect.join_windows import JoinWindows

        return JoinWindows(window, store)
    if isinstance(window.kind, TableJoin):
        from streamer.window.inspect.table_join_windows import TableJoinWindows

        return TableJoinWindows(window, store)
    from streamer.window.inspect.keyed_windows import KeyedWindows

    return KeyedWindows(window, store)
