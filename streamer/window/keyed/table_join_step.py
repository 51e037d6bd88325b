"""One micro-batch of a shard that joins a stream with a table.

The rows of the table are kept by key (`table_rows`). A message is joined when it comes, in the
order of arrival; or, where it is to have the row of its event time and rows may come late, once the
clock has passed its time: until then it waits in a message store.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence

import numpy as np

from streamer.window.contract import Emission, MicroBatchInfo, RowKind, ShuffleRow, Status
from streamer.window.fire.step_io import ShardInput, emit_passthrough
from streamer.window.keyed.arrival_times import IdleMessages, open_arrival_times
from streamer.window.keyed.clocks import BatchClocks
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.message_rows import FreshPack
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.state import FOREVER, MIN_TIME_NS
from streamer.window.keyed.table_changes import NULL_KEY, TableChanges
from streamer.window.keyed.table_join_output import JoinedMessage, TableJoinOutput
from streamer.window.keyed.table_join_rules import DueMessages, KeyMessages, TableJoinRules
from streamer.window.keyed.table_rows import TableBucket, TableRows
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.result_times import find_next_end
from streamer.window.settings.window_types import TableJoin
from streamer.window.state_store import StateStore


class TableJoinStep:
    """One micro-batch of one shard."""

    def __init__(self, window: EventWindow, store: StateStore, keep_dropped: bool) -> None:
        """Read the heads of the shard's state.

        Args:
            window: the join's settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
        """
        assert isinstance(window.kind, TableJoin)
        self._window, self._kind = window, window.kind
        self._rules = TableJoinRules(window.kind, window.time)
        self._store = store
        self._keep_dropped = keep_dropped
        self._head = head = KeyedHead.read(store, window.fingerprint)
        self._waiting = MessageStore(store, False, head.packs, head.next_pack)
        self._rows = TableRows(store, window.kind.table_ttl)
        self._by_key: dict[bytes, KeyMessages] = {}
        is_timed = self._rules.waits and window.time.idle_timeout is not None
        self._arrival_times = open_arrival_times(head) if is_timed else None

    def run(self, rows: Iterable[ShuffleRow]) -> Generator[Emission, None, Status]:
        """Run the micro-batch: give the emissions, return the status."""
        head, shard_input = self._head, ShardInput(rows)
        info = MicroBatchInfo.from_rows(shard_input.clock_bodies)
        now = head.clocks.advance(info)
        clocks = BatchClocks(self._window.time, 1, head.clocks, shard_input.pieces, info)
        yield from emit_passthrough(shard_input, head.counters)
        changes = TableChanges(self._kind, now)
        since = head.next_arrival
        self._sort_out(shard_input, clocks, changes)
        clock = clocks.finish(info.backlog)
        yield from changes.drop_without_key(head.counters, self._keep_dropped)
        flush = info.ended and self._window.time.end_of_input == "flush"
        idle = self._pop_idle(since, clock)
        self._find_due(FOREVER if flush else self._rules.due_until(clock), idle)
        cutoff = self._rules.cutoff(clock)
        due = DueMessages(self._rules.due_until(clock), flush, 0 if idle is None else idle.before)
        yield from self._emit(self._join_all(changes, due, cutoff))
        head.counters.released += self._rows.released_count
        self._waiting.commit()
        head.packs, head.next_pack = self._waiting.head_entries()
        if self._arrival_times is not None:
            head.arrival_times = self._arrival_times.to_fields()
        head.write(self._store)
        waiting_count = self._waiting.held_count
        return Status(
            now=now,
            closed_until=None,
            counters=head.counters,
            held=waiting_count + self._rows.version_count,
            held_bytes=self._waiting.held_bytes + self._rows.byte_count,
            open=(),
            next_due=self._next_due(now, clocks) if waiting_count else None,
            newest_end=None,
            closed=(),
            log=changes.log_lines(),
            open_windows=waiting_count,
            clock_holder=clocks.holder,
            next_end=find_next_end(self._window, clock),
            table_rows=self._rows.key_count,
        )

    def _sort_out(
        self, shard_input: ShardInput, clocks: BatchClocks, changes: TableChanges
    ) -> None:
        """Add the incoming messages and rows to their keys."""
        counters = self._head.counters
        numbered, self._head.next_arrival = shard_input.number_arrivals(self._head.next_arrival)
        for (body, shift, header), row in numbered:
            pack = Pack(body, shift)
            clocks.cap_lags(pack, header.first)
            watermark = clocks.watermark_before(header.first)
            if row.kind == RowKind.RIGHT:
                counters.taken += changes.add_pack(FreshPack(pack, False, b"", watermark, b""))
                for key in pack.keys:
                    if key != NULL_KEY:
                        self._messages_of(key)
                continue
            loaded = self._waiting.add_pack(pack, body, shift, watermark)
            counters.taken += len(loaded.times)
            for key, first, last in _segments_of(pack):
                self._messages_of(key).incoming.append((loaded, first, last))

    def _messages_of(self, key: bytes) -> KeyMessages:
        messages = self._by_key.get(key)
        if messages is None:
            messages = self._by_key[key] = KeyMessages()
        return messages

    def _pop_idle(self, since: int, clock: int) -> IdleMessages | None:
        """Return the messages that have waited for `idle_timeout`, and note when others came.

        Args:
            since: the first arrival number of this micro-batch.
            clock: the clock after it, ns.
        """
        timeout, clocks, known = (
            self._window.time.idle_timeout,
            self._head.clocks,
            self._arrival_times,
        )
        if known is None or timeout is None:
            return None
        fresh = [loaded.times for loaded in self._waiting.fresh_packs]
        if fresh:
            times = np.concatenate(fresh)
            known.add(since, clocks.active, times, self._rules.due_clock(int(times.max())) + 1)
        known.forget_expired(clock)
        if clocks.is_behind:
            return None
        return known.pop_idle(clocks.active, timeout, self._head.next_arrival)

    def _next_due(self, now: int, clocks: BatchClocks) -> int | None:
        """Return the batch time at which a message is joined without new ones, ns, or None."""
        dues = [clocks.next_idle()]
        timeout, known = self._window.time.idle_timeout, self._arrival_times
        if timeout is not None and known is not None and known.oldest is not None:
            dues.append(now + known.oldest + timeout - self._head.clocks.active)
        return min((due for due in dues if due is not None), default=None)

    def _find_due(self, until: int, idle: IdleMessages | None) -> None:
        """Add the messages that have waited long enough to their keys.

        Args:
            until: their last event time, ns.
            idle: those that have waited for `idle_timeout`; None without any.
        """
        high = until if idle is None else max(until, idle.high)
        for loaded in self._waiting.packs_between(MIN_TIME_NS, high):
            if loaded.entry is None:
                continue
            is_due = loaded.times <= until
            if idle is not None:
                is_due |= loaded.pack.arrivals < idle.before
            due = ~loaded.freed & is_due
            arrivals, times = loaded.arrivals_and_times
            for key, first, last in _segments_of(loaded.pack):
                for row in range(first, last):
                    if due[row]:
                        one = (times[row], arrivals[row], loaded, row, False)
                        self._messages_of(key).waiting.append(one)

    def _join_all(
        self, changes: TableChanges, due: DueMessages, cutoff: int | None
    ) -> list[JoinedMessage]:
        """Join the messages of all keys, bucket by bucket, and change the table's rows."""
        now = self._head.clocks.now
        assert now is not None
        joined: list[JoinedMessage] = []
        numbers = []
        for number, keys in self._rows.group_by_bucket(self._by_key):
            bucket = self._rows.load(number, now)
            numbers.append(number)
            for key in keys:
                joined += self._join_key(key, bucket, changes, due)
            self._rows.save(number, bucket, cutoff)
        self._rows.finish(numbers, now, cutoff)
        joined.sort(key=_by_time if self._rules.waits else _by_arrival)
        return joined

    def _join_key(
        self, key: bytes, bucket: TableBucket, changes: TableChanges, due: DueMessages
    ) -> Iterable[JoinedMessage]:
        before, change_count = bucket.versions_of(key), len(changes.of_key(key))
        joined, after = self._rules.join(key, self._by_key[key], before, changes, due)
        if change_count:
            bucket.removed_count += len(before) + change_count - len(after)
            bucket.put(key, after, changes.now)
        return joined

    def _emit(self, joined: Sequence[JoinedMessage]) -> Iterator[Emission]:
        """Free the joined messages, and emit those that the type of the join wants."""
        counters = self._head.counters
        emitted = []
        freed: dict[int, tuple[FreshPack, list[int]]] = {}
        for one in joined:
            freed.setdefault(id(one.loaded), (one.loaded, []))[1].append(one.row)  # type: ignore[arg-type]
            if self._rules.is_emitted(one):
                emitted.append(one)
        for loaded, rows in freed.values():
            loaded.free(rows)  # type: ignore[arg-type]
        counters.released += len(emitted)
        counters.passed_over += len(joined) - len(emitted)
        counters.emitted_windows += len(emitted)
        counters.emitted_messages += len(emitted)
        yield from TableJoinOutput().emit(emitted)


def _segments_of(pack: Pack) -> Iterator[tuple[bytes, int, int]]:
    """Give by key the range of its rows in a pack."""
    starts = pack.starts
    for group, key in enumerate(pack.keys or (b"",)):
        yield key, int(starts[group]), int(starts[group + 1])


def _by_arrival(joined: JoinedMessage) -> int:
    return joined.arrival


def _by_time(joined: JoinedMessage) -> tuple[int, int]:
    return joined.time, joined.arrival
