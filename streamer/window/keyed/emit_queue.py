"""What comes out of a micro-batch, and what is given back, found as its keys are gone through."""

from __future__ import annotations

from typing import Final

from streamer.window.contract.emission import WindowReason
from streamer.window.keyed.aggregate_batches import AggregateSnapshot
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.pending_batch import PER_EVENT, PendingBatch
from streamer.window.keyed.per_event_batches import PerEventBatch
from streamer.window.keyed.ranges import FreeRange
from streamer.window.keyed.state import FOREVER, KeyState, MessageRange, Window
from streamer.window.keyed.window_rules import WindowRules

_KEYS_PER_PASS: Final = 50_000


class EmitQueue:
    """What is put off to the end, when it can be done for many keys together.

    Attributes:
        first_arrival: the first arrival number of the micro-batch.
        batches: batches to be.
        per_event_batches: those of folded windows at single events.
        free_ranges: by key, whose messages are given back when all has come out.
        lapsed_ranges: the same for messages of before, of keys that have begun afresh.
        spared_arrivals: by key, the arrival numbers of messages that are not given back.
        incomplete_arrivals: by key, the arrivals of messages that no count window will hold.
    """

    def __init__(
        self, rules: WindowRules, forwards: bool, first_arrival: int, next_arrival: int
    ) -> None:
        """Begin.

        Args:
            rules: of the kind of windows.
            forwards: messages are given back as soon as they have come out.
            first_arrival: the first arrival number of the micro-batch.
            next_arrival: the first one of the next.
        """
        self._rules = rules
        self._forwards = forwards
        self.first_arrival = first_arrival
        self._next_arrival = next_arrival
        self.batches: list[PendingBatch] = []
        self.per_event_batches: list[PerEventBatch] = []
        self.free_ranges: dict[bytes, list[FreeRange]] = {}
        self.lapsed_ranges: dict[bytes, list[FreeRange]] = {}
        self.spared_arrivals: dict[bytes, set[int]] = {}
        self.incomplete_arrivals: dict[bytes, list[int]] = {}

    def emit_for_event(
        self,
        key: bytes,
        state: KeyState,
        windows: list[Window],
        reason: WindowReason,
        arrival: int,
    ) -> None:
        """Let windows come out that an event has changed, with what they hold by then."""
        for window in windows:
            aggregate, end, first = window.aggregate, window.end, window.first
            if aggregate is not None:
                snapshot = (aggregate, aggregate.states, aggregate.max_event_time, window.count)
                self.per_event_batches.append((arrival, end, first, window.start, key, *snapshot))
                continue
            place = (PER_EVENT, arrival, window.end, window.first, window.start)
            several = self._rules.mergeable and len(state.windows) > 1
            excluded_ranges = state.excluded_ranges(window, self.first_arrival) if several else ()
            # Where bounds come again: others may hold still what was in it before its key began
            # afresh.
            since = window.first if self._rules.tracks_closed else None
            self.queue_emit(
                key, window, reason, place, arrival, since, excluded_ranges=excluded_ranges
            )

    def queue_emit(
        self,
        key: bytes,
        window: Window,
        reason: WindowReason,
        place: tuple[int, ...],
        until: int | None = None,
        since: int | None = None,
        frees_messages: bool = False,
        excluded_ranges: tuple[MessageRange, ...] = (),
    ) -> None:
        """Let a window come out; see `outputs.Output`."""
        rules = self._rules
        low, high = rules.message_bounds(window)
        start: int | None = window.start
        end: int | None = window.end
        if rules.count_based:
            start = end = None
        self.batches.append(
            PendingBatch(
                key,
                low,
                high,
                start,
                end,
                reason,
                place,
                window.count,
                until,
                since,
                window.excluded,
                frees_messages,
                (window.first, window.last_arrival(self.first_arrival))
                if rules.mergeable
                else None,
                excluded_ranges,
                AggregateSnapshot.from_window(window, self._next_arrival),
            )
        )

    def queue_free(self, key: bytes, low: int, high: int, until: int = FOREVER) -> None:
        """Give back what lies between two times, both inclusive, when everything has come out.

        What arrived after `until` stays.
        """
        if not self._forwards:
            self.free_ranges.setdefault(key, []).append((low, high, until))

    def free_lapsed(self, store: MessageStore) -> int:
        """Give back messages of keys that have begun afresh; return how many there were."""
        return self._free_ranges(store, self.lapsed_ranges, self.first_arrival)

    def free_unneeded(self, store: MessageStore) -> int:
        """Give back what no window needs any more; return how many messages that were."""
        freed = store.free_fresh() if self._forwards else 0
        freed += self._free_ranges(store, self.free_ranges)
        return freed - sum(map(len, self.incomplete_arrivals.values()))

    def _free_ranges(
        self, store: MessageStore, ranges: dict[bytes, list[FreeRange]], before: int | None = None
    ) -> int:
        keys, freed = list(ranges), 0
        for first in range(0, len(keys), _KEYS_PER_PASS):
            some = {key: ranges[key] for key in keys[first : first + _KEYS_PER_PASS]}
            freed += store.free(some, self.spared_arrivals, before)
        return freed
