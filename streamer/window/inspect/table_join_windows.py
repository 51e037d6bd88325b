"""A stream that is joined with a table: messages that wait, and rows of the table, by key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamer.window.contract import Emission
from streamer.window.inspect.window_query import WindowListing, WindowQuery, WindowRow
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.table_join_rules import TableJoinRules
from streamer.window.keyed.table_rows import TableRows
from streamer.window.pack.window_metadata import format_shown_key
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import TableJoin
from streamer.window.state_store import StateStore


class TableJoinWindows:
    """The state of one shard after a micro-batch."""

    def __init__(self, window: EventWindow, store: StateStore) -> None:
        """Read the heads of the shard's state; nothing is written."""
        assert isinstance(window.kind, TableJoin)
        self._head = KeyedHead.read(store, window.fingerprint)
        self._rows = TableRows(store, None)
        self._rules = TableJoinRules(window.kind, window.time)
        self._waiting = MessageStore(store, False, self._head.packs, 0)

    @property
    def key_count(self) -> int:
        """Number of messages that wait and of rows, which a listing reads in the place of keys."""
        return self._waiting.held_count + self._rows.key_count

    def list_windows(self, query: WindowQuery) -> WindowListing:
        """Return a row for each key of a side that matches a question; in no order.

        Those of the stream have the event times of the first and last message that waits; those of
        the table the times of the first and last version, and their number.
        """
        budget = query.max_keys
        rows: list[WindowRow] = []
        for row in self._list_rows(query):
            if budget <= 0:
                return WindowListing(rows, len(rows), False)
            budget -= 1
            if row is not None:
                rows.append(row)
        return WindowListing(rows, len(rows), True)

    def emissions(self, query: WindowQuery) -> Iterator[Emission]:
        """Give nothing: messages that wait have no window, and rows are emitted with messages."""
        return iter(())

    def _list_rows(self, query: WindowQuery) -> Iterator[WindowRow | None]:
        """Give the rows; None for a key that does not match."""
        for key, times in self._waiting_times().items():
            shown = format_shown_key(key)
            low, high = min(times), max(times)
            matches = query.matches(shown) and query.start in (None, low)
            closes = self._rules.due_clock(low)
            yield (
                WindowRow(
                    *(shown, low, high, len(times), None),
                    closes=closes,
                    closes_by="event_time",
                    side="left",
                )
                if matches
                else None
            )
        for bucket in self._rows.iterate_buckets():
            for key, (_, versions) in bucket.iterate_rows():
                shown = format_shown_key(key)
                low, high = versions[0].time, versions[-1].time
                matches = query.matches(shown) and query.start in (None, low)
                row = WindowRow(
                    *(shown, low, high, len(versions), None), closes_by="never", side="right"
                )
                yield row if matches else None

    def _waiting_times(self) -> dict[bytes, list[int]]:
        """Return the event times of the messages that wait, by key."""
        by_key: dict[bytes, list[int]] = {}
        for loaded in self._waiting.iterate_stored():
            waits = ~loaded.freed
            starts = loaded.pack.starts
            for at, key in enumerate(loaded.pack.keys):
                span = slice(starts[at], starts[at + 1])
                if waits[span].any():
                    times = loaded.times[span][np.flatnonzero(waits[span])].tolist()
                    by_key.setdefault(key, []).extend(times)
        return by_key
