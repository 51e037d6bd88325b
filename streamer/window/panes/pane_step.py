"""The step of windows on a grid that follow event times, where all keys share one clock.

Whole panes close together, whatever keys are in them. A message may come when some of its windows
have closed and others have not, by the clock before it: it waits until those are emitted that it
must not be in, before it joins its pane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streamer.core.timestamps import format_rfc3339
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract import (
    MAX_DROPPED_SAMPLES,
    DroppedSample,
    Emission,
    MicroBatchInfo,
    RowKind,
)
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.fire.dropped_sample import sample_dropped
from streamer.window.fire.group_columns import LabelColumns
from streamer.window.fire.group_labels import make_shared_labels
from streamer.window.fire.having import HavingFilter
from streamer.window.fire.partition_watermarks import PartitionWatermarks
from streamer.window.fire.source_clocks import (
    SourceClocks,
    SourceWatermarks,
    follow_pieces,
    name_partition,
)
from streamer.window.fire.step_io import ShardInput, emit_to_late_output
from streamer.window.pack.message_columns import DecodedMetadata, MessageBuilder
from streamer.window.pack.window_metadata import WINDOW_MAX_TIME, WindowMetadata
from streamer.window.panes.grid_step import ClosingWindow, GridStep, OrderedEmissions
from streamer.window.panes.split_pack import split_by_closed_windows
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import EventTimeSettings
from streamer.window.state.pane_store import IncomingPack
from streamer.window.state_store import StateStore

_NONE_CLOSED: Final = -(2**63) - 1
"""`closed_until` before any window has closed: no window that holds a message ends there."""


class DeferredPacks(NamedTuple):
    """Packs of a pane some of whose windows had closed before they came.

    Attributes:
        closed_until: the newest of these windows' ends.
        pane: the pane.
        packs: the packs.
    """

    closed_until: int
    pane: int
    packs: list[IncomingPack]


class PackOrigin(NamedTuple):
    """Origin of a pack, for messages that are dropped.

    Attributes:
        source: the partition that it is from.
        watermark: the clock before its first message, or before its piece, ns; None for none.
        time: the event time of its first message, ns, where that is known.
    """

    source: str
    watermark: int | None
    time: int | None = None


class PaneStep(GridStep):
    """One step of one shard."""

    # The grid names windows [start, end) by the instants before.
    bound_offset = 1

    def __init__(
        self,
        window: Window,
        store: StateStore,
        keep_dropped: bool,
        having: CompiledMapping | None,
        batch_emissions: bool = False,
    ) -> None:
        super().__init__(window, store, keep_dropped, batch_emissions and having is None)
        self._uses_event_time = window.uses_event_time
        self._time = window.time if isinstance(window, EventWindow) else EventTimeSettings()
        self._having_query = having
        self._having: HavingFilter | None = None
        self._deferred: list[DeferredPacks] = []
        self._origins: dict[int, PackOrigin] = {}
        self._decoded_metadata: DecodedMetadata = {}

    def _initial_closed_until(self) -> int:
        return _NONE_CLOSED

    def _take_messages(self, shard_input: ShardInput, info: MicroBatchInfo) -> Iterator[Emission]:
        if self._having_query is not None:
            self._having = HavingFilter(self._having_query, self._now, self._report)
        head = self._head
        before = head.stream if self._uses_event_time else None
        known = None if head.sources is None else SourceClocks.from_fields(head.sources)
        clocks, known = follow_pieces(self._time, shard_input.pieces, before, known, info)
        head.sources = None if known is None else known.to_fields()
        self._clock_holder, self._next_idle = clocks.holder, clocks.next_idle()
        for piece in shard_input.pieces:
            end = self._grid.last_end(piece.max_event_time)
            head.newest = end if head.newest is None else max(head.newest, end)
        late: list[tuple[IncomingPack, int]] = []
        until = _NONE_CLOSED
        for (pane, closed_until), packs in sorted(
            self._group_by_closed_until(shard_input, clocks).items()
        ):
            last = self._grid.last_end(pane)
            if last <= closed_until:
                late += [(pack, last) for pack in packs]
                until = max(until, last)
            elif closed_until <= self._closed_until or closed_until < self._grid.end_at_or_after(
                pane
            ):
                self._admit_packs(pane, packs)
            else:
                self._deferred.append(DeferredPacks(closed_until, pane, packs))
        self._deferred.sort(key=lambda waiting: waiting[:2], reverse=True)
        if self._uses_event_time:
            head.stream = clocks.watermark_after
        if late:
            yield from self._drop_late(late, until)

    def _drop_late(self, late: list[tuple[IncomingPack, int]], until: int) -> Iterator[Emission]:
        """Drop packs, each with the end of its newest window; the newest of these is `until`."""
        count = sum(pack.header.messages for pack, _ in late)
        self._head.counters.count_dropped("late", count)
        closed = self._closed_until
        if self._head.stream is not None:
            closed = max(closed, self._window.closed_until(self._head.stream))
        offset, samples = self.bound_offset, list[DroppedSample]()
        for pack, last in late[:MAX_DROPPED_SAMPLES]:
            origin = self._origins[id(pack)]
            sample = sample_dropped(pack, self._window.keyed)
            samples.append(
                replace(
                    sample,
                    event_time=sample.event_time if origin.time is None else origin.time,
                    watermark=origin.watermark,
                    window_end=last + offset,
                    source=origin.source,
                )
            )
        self._report.add_late(count, until + offset, closed + offset, samples)
        if self._keep_dropped:
            yield from emit_to_late_output([(pack.body, pack.shift) for pack, _ in late], "late")

    def _group_by_closed_until(
        self, shard_input: ShardInput, clocks: PartitionWatermarks
    ) -> dict[tuple[int, int], list[IncomingPack]]:
        """Return packs by pane and by `closed_until` before them."""
        packs: dict[tuple[int, int], list[IncomingPack]] = defaultdict(list)
        numbered, self._head.next_arrival = shard_input.number_arrivals(self._head.next_arrival)
        for pack, row in numbered:
            base, source = None, ""
            if self._uses_event_time:
                base = clocks.watermark_before(row.arrival)
                source = name_partition(clocks.partition_of(row.arrival))
            closed_until = self._closed_until
            if base is not None:
                closed_until = max(closed_until, self._window.closed_until(base))
            if row.kind == RowKind.DISORDERED:
                ends = self._grid.windows_of(row.pane)
                cap = clocks.cap(row.arrival) if isinstance(clocks, SourceWatermarks) else None
                closes = map(self._window.due_time, ends)
                for closed, part, time, clock in split_by_closed_windows(
                    pack, base, closes, self._window.sorts_by_time, cap
                ):
                    at = ends[closed - 1] if closed else closed_until
                    packs[row.pane, max(at, closed_until)].append(part)
                    self._origins[id(part)] = PackOrigin(source, clock, time)
            else:
                packs[row.pane, closed_until].append(pack)
                self._origins[id(pack)] = PackOrigin(source, base)
        return packs

    def _admit_packs(self, pane: int, packs: list[IncomingPack]) -> None:
        self._pane_store.put(pane, packs)
        self._head.counters.taken += sum(pack.header.messages for pack in packs)

    def _oldest_end(self) -> int | None:
        end = super()._oldest_end()
        while self._deferred and (end is None or self._deferred[-1].closed_until < end):
            closed_until, pane, packs = self._deferred.pop()
            # All windows that they must not be in are closed.
            self._closed_until = max(self._closed_until, closed_until)
            self._pane_cache.evict(pane)
            self._admit_packs(pane, packs)
            end = super()._oldest_end()
        return end

    def _emit_window(self, closing: ClosingWindow) -> OrderedEmissions:
        counters, keyed = self._head.counters, self._window.keyed
        start, end = closing.start + self.bound_offset, closing.end + self.bound_offset
        labels = WindowMetadata(start, end, closing.reason)
        collected = self._collect_groups(closing)
        batches = self._batch_groups(closing, collected)
        if batches is not None:
            shared, newest = labels.entries, batches.max_time
            if not keyed:
                assert newest is not None
                shared = {**shared, WINDOW_MAX_TIME: format_rfc3339(newest)}

            def make_labels(max_times: Ints | None, keys: Sequence[bytes]) -> LabelColumns:
                return make_shared_labels(shared, *((max_times, keys) if keyed else ()))

            for batch in batches.iterate_batches(start, end, closing.reason, make_labels):
                yield 0, batch
            counters.emitted_messages += batches.messages
            counters.emitted_windows += len(batches) if keyed else 1
            return
        metadata = EventWindowMetadata(labels, keyed, self._decoded_metadata)
        windows = 0
        # What is asked of a window is asked of it as a whole, before a pipeline parts it.
        whole = self._having is not None and not keyed
        for first, key, messages in self._fire_window(closing, collected, metadata, whole):
            count = messages.size if isinstance(messages, AggregatedGroup) else len(messages)
            if self._having is not None and not self._having.should_emit(messages):
                counters.suppressed += count
                continue
            windows += 1
            counters.emitted_messages += count
            yield first, Emission(end, messages, closing.reason, key, start)
        counters.emitted_windows += windows if keyed else min(windows, 1)

    def _update_head(self) -> None:
        self._head.horizon = None if self._closed_until <= _NONE_CLOSED else self._closed_until


class EventWindowMetadata:
    """Metadata that a window adds to its messages (`GroupMetadata`)."""

    def __init__(self, labels: WindowMetadata, keyed: bool, decoded: DecodedMetadata) -> None:
        """Take the window's labels; `decoded` remembers metadata for all windows of a step."""
        self.differs_by_group = keyed
        self._labels = labels
        self._decoded = decoded

    def builder_for(self, key: bytes | None, max_time: int | None) -> MessageBuilder:
        """Return the builder of a group, which all share where windows have no keys."""
        assert max_time is not None
        return MessageBuilder(
            self._labels.for_key(max_time, key if self.differs_by_group else None), self._decoded
        )
