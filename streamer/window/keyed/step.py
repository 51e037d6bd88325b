"""One micro-batch of a shard whose windows open and close key by key.

Events are assigned to windows by the rules of the kind, one key after another (`assigning`), then
due windows are closed (`closing`). The messages of batches are looked up at the end, for many
batches together (`emit`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

from streamer.window.contract import (
    ClosedWindow,
    Emission,
    LogLine,
    MicroBatchInfo,
    ShuffleRow,
    Status,
)
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.fire.having import HavingFilter
from streamer.window.fire.step_io import ShardInput, StepReport, emit_passthrough
from streamer.window.keyed.assigning import Assigner
from streamer.window.keyed.clocks import BatchClocks, Watermarks
from streamer.window.keyed.closing import KeyCloser
from streamer.window.keyed.columns.closed_sessions import ClosedSessions
from streamer.window.keyed.columns.incoming import UnpackedPack
from streamer.window.keyed.columns.sessions import RowPathWork, SessionColumns
from streamer.window.keyed.columns.to_keyed_state import to_key_records, to_pack
from streamer.window.keyed.emit import BatchReader, emit_batches
from streamer.window.keyed.emit_queue import EmitQueue
from streamer.window.keyed.empty_windows import begin_listed_runs, listed_digest
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.hopping import HoppingRules
from streamer.window.keyed.incomplete import drop_incomplete
from streamer.window.keyed.key_buckets import Dues, KeyBuckets
from streamer.window.keyed.keyed_aggregation import KeyedAggregation
from streamer.window.keyed.late_messages import LateMessages
from streamer.window.keyed.latest import LatestMessages
from streamer.window.keyed.message_rows import Segment, iterate_in_order
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.session import SessionRules
from streamer.window.keyed.state import FOREVER, NEVER
from streamer.window.keyed.window_rules import make_rules
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.result_times import find_next_end
from streamer.window.state_store import StateStore


class KeyedStep:
    """One micro-batch of one shard."""

    def __init__(
        self,
        window: EventWindow,
        store: StateStore,
        keep_dropped: bool,
        having: CompiledMapping | None = None,
        aggregated_mapping: str | None = None,
        batch_emissions: bool = False,
        listed_keys: Sequence[bytes] = (),
    ) -> None:
        """Read the head of the shard's state.

        Args:
            window: the window's settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
            having: a compiled mapping; a batch for which it is not true is suppressed.
            aggregated_mapping: the mapping that new windows aggregate by; None to keep their
                messages.
            batch_emissions: emit runs of batches (`EmissionBatch`) where possible.
            listed_keys: keys of this shard whose windows are emitted though no message ever came.
        """
        self._listed_keys = listed_keys
        self._batch_emissions = batch_emissions
        self._window = window
        self._settings = window.time
        self._rules = make_rules(window)
        self._store = store
        self._keep_dropped = keep_dropped
        self._having_query = having
        self._report = StepReport()
        self._head = head = KeyedHead.read(store, window.fingerprint)
        self._buckets = KeyBuckets(
            store, head.earliest_dues, head.bucket_count, head.key_count, head.bucket_sizes
        )
        self._messages = MessageStore(store, self._rules.count_based, head.packs, head.next_pack)
        self._aggregation = KeyedAggregation(
            aggregated_mapping,
            head.mappings,
            head.use_counts,
            head.aggregated_count,
            self._rules.mergeable,
            self._rules.unbounded,
        )
        self._columns = SessionColumns(window, store, aggregated_mapping, head.has_columns)

    def run(self, rows: Iterable[ShuffleRow]) -> Generator[Emission, None, Status]:
        """Run the micro-batch: give the emissions, return the status."""
        head, shard_input = self._head, ShardInput(rows)
        counters = head.counters
        info = MicroBatchInfo.from_rows(shard_input.clock_bodies)
        now = head.clocks.advance(info)
        pieces = shard_input.pieces
        clocks = BatchClocks(self._settings, self._rules.unit, head.clocks, pieces, info)
        yield from emit_passthrough(shard_input, counters)
        since = head.next_arrival
        arrivals = self._unpack_arrivals(shard_input, clocks)
        clock_before = head.clocks.closing
        clock = clocks.finish(info.backlog)
        self._begin_listed(shard_input.first_time, clock_before)
        segments, closed_sessions = self._take_columns(arrivals, clock, info.ended)
        forwards = self._settings.emit == "forward" or self._window.holds_nothing
        queue = EmitQueue(self._rules, forwards, since, head.next_arrival)
        latest = self._make_latest(queue, now)
        marks = Watermarks(clocks.before, clock)
        late = self._process_keys(segments, clocks.is_per_key, info, marks, queue, latest)
        self._aggregation.drop_aggregated(self._messages.fresh_packs)
        yield from late.drop_all(counters, self._keep_dropped)
        if latest is not None:
            yield from latest.without_id.drop_all(counters, self._keep_dropped)
        counters.released += queue.free_lapsed(self._messages)
        having = (
            None
            if self._having_query is None
            else HavingFilter(self._having_query, now, self._report)
        )
        reader = BatchReader(self._messages, self._window, self._rules.unit, queue.spared_arrivals)
        closed = yield from emit_batches(
            queue, reader, closed_sessions, having, counters, self._batch_emissions
        )
        counters.released += (
            reader.freed + self._aggregation.freed_count + self._columns.freed_count
        )
        yield from drop_incomplete(
            queue.incomplete_arrivals, self._messages, counters, self._keep_dropped
        )
        counters.released += queue.free_unneeded(self._messages)
        if latest is not None:
            counters.released += self._messages.free_messages(latest.replaced)
        self._messages.commit()
        self._buckets.resize()
        log = (*late.log_lines(), *(latest.log_lines() if latest else ()))
        status = self._make_status(now, closed, (*log, *self._report.log_lines()), clocks)
        without_id = latest.without_id.list_samples() if latest is not None else ()
        status = replace(
            status,
            next_end=find_next_end(self._window, clock),
            due_clock=self._due_clock(),
            watermark=None if clock == NEVER else clock,
            dropped=(*shard_input.dropped_samples(), *late.list_samples(), *without_id),
        )
        blocks = self._columns.blocks
        head.save(self._store, self._buckets, self._messages, self._aggregation, blocks)
        return status

    def _make_latest(self, queue: EmitQueue, now: int) -> LatestMessages | None:
        """Return what keeps the latest message of each id; None for windows of all messages."""
        window = self._window
        if not window.unbounded or window.holds_nothing:
            return None
        return LatestMessages(window, queue, now, self._head.clocks.active)

    def _unpack_arrivals(self, shard_input: ShardInput, clocks: BatchClocks) -> list[UnpackedPack]:
        """Number and unpack the packs that came in."""
        numbered, self._head.next_arrival = shard_input.number_arrivals(self._head.next_arrival)
        unpacked = []
        for (body, shift, header), _ in numbered:
            watermark, partition = (
                clocks.watermark_before(header.first),
                clocks.partition_of(header.first),
            )
            pack = Pack(body, shift)
            clocks.cap_lags(pack, header.first)
            unpacked.append(UnpackedPack(pack, body, shift, watermark, partition))
        return unpacked

    def _begin_listed(self, first_time: int | None, closing: int) -> None:
        """Begin the windows of listed keys, with the first message or with the time of day.

        Args:
            first_time: event time of the first message of this micro-batch, ns; None without one.
            closing: the system clock that had closed windows before, ns.
        """
        rules, head = self._rules, self._head
        listed = self._window.listed_keys
        if not listed or not isinstance(rules, HoppingRules | SessionRules):
            return
        digest = listed_digest(listed)
        if head.listed == digest:
            return
        if self._settings.clock == "system":
            begin = head.clocks.closing if closing == NEVER else closing
        elif head.listed and head.clocks.stream != NEVER:
            begin = head.clocks.stream
        else:
            begin = NEVER if first_time is None else first_time
        if begin != NEVER:
            begin_listed_runs(rules, self._listed_keys, self._buckets, begin)
            head.listed = digest

    def _take_columns(
        self, arrivals: list[UnpackedPack], clock: int, is_ended: bool
    ) -> tuple[dict[bytes, list[Segment]], ClosedSessions]:
        """Merge messages into sessions kept as columns, where possible.

        Returns:
            The segments of all other messages, by key, and the sessions that have closed.
        """
        columns, head = self._columns, self._head
        row_path = columns.release_all()
        if row_path is not None:
            self._take_over_sessions(row_path)
        flush = is_ended and self._settings.end_of_input == "flush"
        row_path, closed_sessions = columns.step(
            arrivals, self._buckets.find_known, clock, head.clocks.active, flush
        )
        self._take_over_sessions(row_path)
        head.counters.taken += columns.taken
        head.open_count += columns.opened_count
        return self._store_arrivals(row_path.arrivals), closed_sessions

    def _take_over_sessions(self, row_path: RowPathWork) -> None:
        """Convert sessions that cannot stay columns to records of keys."""
        if row_path.aggregates is None or not len(row_path.sessions):
            return
        number = self._aggregation.mapping_number_of(row_path.aggregates.text)
        self._messages.insert_pack(to_pack(row_path.sessions, self._window.keyed))
        records = list(to_key_records(row_path.sessions, row_path.aggregates, number, self._rules))
        for _, state, _ in records:
            self._aggregation.count_open_windows(state, 1)
        self._aggregation.held_count += int(row_path.sessions.counts.sum()) - len(row_path.sessions)
        self._buckets.insert(records)

    def _store_arrivals(self, arrivals: Iterable[UnpackedPack]) -> dict[bytes, list[Segment]]:
        """Add packs to the message store; return the segments of each key."""
        segments: dict[bytes, list[Segment]] = {}
        for pack, body, shift, watermark, partition in arrivals:
            loaded = self._messages.add_pack(pack, body, shift, watermark, partition)
            spans = zip(pack.starts[:-1], pack.starts[1:], strict=True)
            for key, (first, last) in zip(pack.keys or [b""], spans, strict=True):
                mine = segments.get(key)
                if mine is None:
                    segments[key] = [(loaded, first, last)]
                else:
                    mine.append((loaded, first, last))
        return segments

    def _process_keys(
        self,
        segments: dict[bytes, list[Segment]],
        by_key: bool,
        info: MicroBatchInfo,
        watermarks: Watermarks,
        queue: EmitQueue,
        latest: LatestMessages | None,
    ) -> LateMessages:
        """Process every key that has messages or is due; return the late messages."""
        head, buckets, aggregation = self._head, self._buckets, self._aggregation
        rules, settings = self._rules, self._settings
        active, ended, now = head.clocks.active, info.ended, head.clocks.now or 0
        follow = self._messages.is_fresh_in_order
        taking = Assigner(rules, settings, aggregation, queue, now, active, by_key, follow)
        idle = None if head.clocks.is_behind else active
        closing = KeyCloser(rules, settings, aggregation, queue, watermarks, idle, ended, by_key)
        dues: Dues = (watermarks.after, active, now)
        numbers = buckets.select_buckets(segments, dues)
        flush = ended and self._window.end_of_input == "flush"
        if flush:
            numbers = dict(sorted({**dict.fromkeys(buckets.earliest_dues, []), **numbers}.items()))
        for number, touched in numbers.items():
            bucket = buckets.load(number)
            before = len(bucket)
            keys = dict.fromkeys(touched)
            keys.update(dict.fromkeys(bucket.keys() if flush else bucket.due_keys(dues)))
            for key in keys:
                state = bucket.get(key)
                windows = len(state.windows)
                if aggregation.is_needed:
                    aggregation.load(state)
                    aggregation.count_open_windows(state, -1)
                if by_key:
                    taking.reset_expired_clock(key, state)
                mine = segments.get(key)
                if mine is not None and latest is not None:
                    latest.assign(key, state, iterate_in_order(mine))
                elif mine is not None:
                    taking.assign(key, state, mine)
                when = closing.close_due(key, state)
                head.open_count += len(state.windows) - windows
                if aggregation.is_needed:
                    aggregation.count_open_windows(state, 1)
                bucket.put(key, state, when)
            buckets.save(number, bucket, before)
        head.counters.taken += taking.taken
        if latest is not None:
            head.counters.taken += latest.taken
        return taking.late_messages

    def _make_status(
        self,
        now: int,
        closed: tuple[ClosedWindow, ...],
        log: tuple[LogLine, ...],
        clocks: BatchClocks,
    ) -> Status:
        """Return the shard's status after the micro-batch."""
        records = sum(self._buckets.sizes.values()) if self._aggregation.is_needed else 0
        blocks = self._columns.blocks
        return Status(
            now=now,
            closed_until=None,
            counters=self._head.counters,
            held=self._messages.held_count + self._aggregation.held_count + blocks.held_count,
            held_bytes=self._messages.held_bytes + records + blocks.held_bytes,
            open=(),
            next_due=self._next_due(now, clocks),
            newest_end=None,
            closed=closed,
            log=log,
            open_windows=self._head.open_count,
            clock_holder=clocks.holder,
        )

    def _due_clock(self) -> int | None:
        """Return the event time at which the clock of the stream closes a window; None for none."""
        if self._settings.clock == "system":
            return None
        dues = [clock for clock, _, _ in self._buckets.earliest_dues.values()]
        if self._columns.next_due is not None:
            dues.append(self._columns.next_due)
        due = min(dues, default=FOREVER)
        return None if due == FOREVER else due

    def _next_due(self, now: int, batch_clocks: BatchClocks) -> int | None:
        """Return when a window closes without new messages, as batch time, ns; None for never."""
        clocks = self._head.clocks
        dues = [FOREVER]
        if self._head.open_count and (idle := batch_clocks.next_idle()) is not None:
            dues.append(idle)
        if self._settings.clock == "system" and self._columns.next_due is not None:
            dues.append(self._columns.next_due)
        for clock, active, _ in self._buckets.earliest_dues.values():
            if self._settings.clock == "system":
                dues.append(clock)
            if active != FOREVER:
                dues.append(now + active - clocks.active)
        due = min(dues)
        return None if due == FOREVER else due
