"""The batches that a micro-batch emits and the messages that it frees, queued key by key.

While keys are processed one after another, only bounds are queued. At the end the messages of many
batches are looked up together (`emit`), and the messages of many keys are freed together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamer.window.aggregate.mapping_aggregation import States
from streamer.window.contract import WindowReason
from streamer.window.keyed.aggregate_batches import AggregateSnapshot
from streamer.window.keyed.message_rows import FreeRange
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.state import FOREVER, KeyState, MessageRange, Window
from streamer.window.keyed.window_aggregate import WindowAggregate
from streamer.window.keyed.window_rules import WindowRules

_KEYS_PER_PASS: Final = 50_000

PER_EVENT, ON_CHANGE, ON_CLOSE = 0, 1, 2
"""First number of a batch's `order`: batches per event come before those per micro-batch, and
these before closed windows."""


@dataclass(slots=True)
class PendingBatch:
    """A batch of a window before its messages are looked up.

    Attributes:
        key: the window's key; empty without keys.
        low: the least time of its messages; an arrival number for count windows.
        high: the largest, inclusive.
        start: start of the window, ns, as in the metadata of its messages; None for count windows.
        end: end of the window, likewise.
        reason: why the batch is emitted.
        order: batches are emitted in the order of these tuples.
        count: about how many messages it has.
        until: it has only messages with arrival numbers up to this one; None for all.
        since: it has only messages with arrival numbers from this one on; None for all.
        excluded: arrival numbers of messages in its bounds that were late for it.
        frees_messages: whether its messages, which are in no other window, are freed with it.
        arrivals: its smallest and largest arrival number, for windows in whose bounds messages of
            other windows may lie.
        excluded_ranges: messages in its bounds that are in other windows, see
            `KeyState.excluded_ranges`.
        snapshot: its aggregate; None if its messages are kept.
        only: the arrival numbers of its messages; None for all in its bounds.
        is_empty: whether it is a window without messages.
        stand_in: payload and encoded metadata of what stands in for these; None for nothing.
        offsets: see `Window`.
    """

    key: bytes
    low: int
    high: int
    start: int | None
    end: int | None
    reason: WindowReason
    order: tuple[Any, ...]
    count: int
    until: int | None = None
    since: int | None = None
    excluded: set[int] | None = None
    frees_messages: bool = False
    arrivals: tuple[int, int] | None = None
    excluded_ranges: tuple[MessageRange, ...] = ()
    snapshot: AggregateSnapshot | None = None
    only: frozenset[int] | None = None
    is_empty: bool = False
    stand_in: tuple[bytes, bytes] | None = None
    offsets: tuple[int, int] | None = None


PerEventBatch = tuple[int, int, int, int, bytes, WindowAggregate, States, int, int]
"""The aggregate of a window after one event, for `emit: each`: the event's arrival number; the
window's end, first arrival number, start, key and aggregate; the aggregate's states after the
event, its largest event time and its number of messages.

It is a plain tuple, and in this order, since there is one for each event, and they are sorted."""


def to_pending_batch(batch: PerEventBatch) -> PendingBatch:
    """Convert a batch per event, to sort it among other batches."""
    arrival, end, first, start, key, aggregate, states, max_event_time, size = batch
    snapshot = AggregateSnapshot(aggregate, states, first, max_event_time, size, arrival)
    order = (PER_EVENT, arrival, end, first, start)
    bounds = (start, min(end, FOREVER), start, end)
    return PendingBatch(key, *bounds, "each", order, 1, snapshot=snapshot)


class EmitQueue:
    """The queue of one micro-batch.

    Attributes:
        first_arrival: the first arrival number of the micro-batch.
        batches: batches to be emitted.
        per_event_batches: batches of aggregated windows, one for each event.
        free_ranges: by key, messages to be freed after all batches are emitted.
        lapsed_ranges: by key whose clock expired, messages of earlier micro-batches to be freed.
        spared_arrivals: by key, arrival numbers of messages that are not freed.
        incomplete_arrivals: by key, arrival numbers of messages that no count window will hold.
    """

    def __init__(
        self, rules: WindowRules, forwards: bool, first_arrival: int, next_arrival: int
    ) -> None:
        """Create an empty queue.

        Args:
            rules: the rules of the window kind.
            forwards: free messages as soon as they are emitted (`emit: forward`, and windows that
                hold none).
            first_arrival: the first arrival number of the micro-batch.
            next_arrival: the first arrival number of the next one.
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
        """Queue a batch of each window that an event has changed, as the window is after it.

        Args:
            key: the key.
            state: the key's state.
            windows: the changed windows.
            reason: why they are emitted.
            arrival: the event's arrival number.
        """
        for window in windows:
            aggregate, end, first = window.aggregate, window.end, window.first
            if aggregate is not None:
                snapshot = (aggregate, aggregate.states, aggregate.max_event_time, window.count)
                self.per_event_batches.append((arrival, end, first, window.start, key, *snapshot))
                continue
            order = (PER_EVENT, arrival, window.end, window.first, window.start)
            several = self._rules.mergeable and len(state.windows) + len(state.full) > 1
            excluded_ranges = state.excluded_ranges(window, self.first_arrival) if several else ()
            # A window may open again with the bounds of an earlier one of the key, whose messages
            # may still be held by others.
            since = window.first if self._rules.tracks_closed else None
            self.queue_emit(
                key, window, reason, order, arrival, since, excluded_ranges=excluded_ranges
            )

    def queue_emit(
        self,
        key: bytes,
        window: Window,
        reason: WindowReason,
        order: tuple[int, ...],
        until: int | None = None,
        since: int | None = None,
        frees_messages: bool = False,
        excluded_ranges: tuple[MessageRange, ...] = (),
    ) -> None:
        """Queue a batch of a window; see `PendingBatch` for the arguments."""
        rules = self._rules
        low, high = rules.message_bounds(window)
        start, end = (
            (None, None) if rules.count_based or rules.unbounded else (window.start, window.end)
        )
        arrivals = (window.first, window.last_arrival(self.first_arrival))
        self.batches.append(
            PendingBatch(
                key,
                low,
                high,
                start,
                end,
                reason,
                order,
                window.count,
                until,
                since,
                window.excluded,
                frees_messages,
                arrivals if rules.mergeable else None,
                excluded_ranges,
                AggregateSnapshot.from_window(window, self._next_arrival),
                window.only,
                offsets=window.offsets,
            )
        )

    def queue_empty(
        self, key: bytes, start: int, end: int, stand_in: tuple[bytes, bytes] | None
    ) -> None:
        """Queue a window without messages; see `PendingBatch`."""
        # After the windows that have messages and end with it.
        order = (ON_CLOSE, end, FOREVER, start, key)
        batch = PendingBatch(key, 0, 0, start, end, "empty", order, 0)
        batch.is_empty, batch.stand_in = True, stand_in
        self.batches.append(batch)

    def queue_deleted(self, key: bytes, time: int, arrival: int, order: int) -> None:
        """Queue a batch of the message that has taken the last one of a key out of its window.

        Args:
            key: the key.
            time: the message's time, ns.
            arrival: its arrival number.
            order: first number of the batch's `order`.
        """
        place = (order, arrival) if order == PER_EVENT else (order, FOREVER, arrival)
        only = frozenset((arrival,))
        self.batches.append(
            PendingBatch(key, time, time, None, None, "deleted", place, 1, only=only)
        )

    def queue_free(self, key: bytes, low: int, high: int, until: int = FOREVER) -> None:
        """Free messages of a key after all batches are emitted.

        Args:
            key: the key.
            low: the least of their times.
            high: the largest, inclusive.
            until: the largest of their arrival numbers.
        """
        if not self._forwards:
            self.free_ranges.setdefault(key, []).append((low, high, until))

    def free_lapsed(self, store: MessageStore) -> int:
        """Free old messages of keys whose clock expired; return how many were freed."""
        return self._free_ranges(store, self.lapsed_ranges, self.first_arrival)

    def free_unneeded(self, store: MessageStore) -> int:
        """Free the messages that no window needs; return how many of them were not incomplete."""
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
