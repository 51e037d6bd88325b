"""Messages of a join that wait for a match: by side and key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamer.window.contract import Emission
from streamer.window.inspect.window_query import (
    WindowListing,
    WindowQuery,
    WindowRow,
)
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.join_matching import SIDES, JoinRules, Side
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.keyed.message_store import MessageStore
from streamer.window.pack.window_metadata import format_shown_key
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Join
from streamer.window.state.layout import FIRST_RIGHT_PACK_SEQ
from streamer.window.state_store import StateStore


class JoinWindows:
    """The waiting messages of one shard, as its state has them after a micro-batch."""

    def __init__(self, window: EventWindow, store: StateStore) -> None:
        """Read the head of the shard's state; nothing is written."""
        assert isinstance(window.kind, Join)
        self._window = window
        self._store = store
        self._head = KeyedHead.read(store, window.fingerprint)
        is_system_clock = window.time.clock == "system"
        self._rules = JoinRules(window.kind, window.time.allowed_lateness, is_system_clock)

    @property
    def key_count(self) -> int:
        """Number of messages that wait, which a listing looks through in the place of keys."""
        return sum(count - freed for _, _, _, count, freed, _ in self._head.packs)

    def list_windows(self, query: WindowQuery) -> WindowListing:
        """Return a row for each side and key that match a question; in no order.

        Its bounds are the event times of its first and last message.
        """
        groups: dict[tuple[Side, str | None], list[int]] = {}
        budget, is_complete = query.max_keys, True
        for side in SIDES:
            for loaded in self._iterate_packs(side):
                if budget <= 0:
                    is_complete = False
                    break
                budget -= len(loaded.times)
                for key, times in self._times_by_key(loaded):
                    if query.matches(key):
                        entry = groups.setdefault((side, key), [0, times[0], times[0]])
                        entry[0] += len(times)
                        entry[1], entry[2] = min(entry[1], *times), max(entry[2], *times)
        rows = [
            WindowRow(
                *(key, first, last, count, None),
                closes=self._rules.expires_at(side, first),
                closes_by="clock" if self._window.time.clock == "system" else "event_time",
                side=side,
            )
            for (side, key), (count, first, last) in groups.items()
            if query.start in (None, first)
        ]
        return WindowListing(rows, len(rows), is_complete)

    def emissions(self, query: WindowQuery) -> Iterator[Emission]:
        """Give nothing: messages that wait have no window yet."""
        return iter(())

    def _iterate_packs(self, side: Side) -> Iterator[LoadedPack]:
        is_right = side == "right"
        entries = [one for one in self._head.packs if (one[0] >= FIRST_RIGHT_PACK_SEQ) == is_right]
        return MessageStore(self._store, False, entries, 0).iterate_stored()

    def _times_by_key(self, loaded: LoadedPack) -> Iterator[tuple[str | None, list[int]]]:
        """Give the event times of the messages that wait, by key."""
        pack = loaded.pack
        waiting = ~loaded.freed
        for at, key in enumerate(pack.keys or [b""]):
            span = slice(pack.starts[at], pack.starts[at + 1])
            times = loaded.times[span][np.flatnonzero(waiting[span])].tolist()
            if times:
                text = format_shown_key(key) if self._window.keyed else None
                yield text, times
