"""The step of a shard without windows: each message goes on by itself, with its key and its time.

In order of arrival it goes on at once, and nothing is kept but clocks and counters; in order of
event times it waits (`waiting_messages`). What the pipeline keeps of a key is its own affair
(`state.keyed_values`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain, repeat

import numpy as np

from streamer.core.message import Batch
from streamer.window.contract import (
    Counters,
    Emission,
    KeyedEmission,
    MicroBatchInfo,
    ShuffleRow,
    Status,
)
from streamer.window.fire.step_io import ShardInput, emit_passthrough
from streamer.window.keyed.clocks import BatchClocks
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.state import FOREVER, NEVER
from streamer.window.keyed.waiting_messages import WaitingMessages
from streamer.window.pack.message_columns import DecodedMetadata, MessageBuilder
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.result_times import find_next_end
from streamer.window.state.pane_store import IncomingPack
from streamer.window.state_store import StateStore


class MessageStep:
    """One micro-batch of one shard."""

    def __init__(self, window: EventWindow, store: StateStore, keep_dropped: bool = False) -> None:
        """Read the head of the shard's state.

        Args:
            window: the buffer's settings.
            store: the shard's state.
            keep_dropped: emit dropped messages too, for `late_output`.
        """
        self._keep_dropped = keep_dropped
        self._window = window
        self._store = store
        self._head = KeyedHead.read(store, window.fingerprint)
        self._decoded: DecodedMetadata = {}

    def run(self, rows: Iterable[ShuffleRow]) -> Generator[Emission, None, Status]:
        """Run the micro-batch: give the emissions, return the status."""
        head, shard_input = self._head, ShardInput(rows)
        counters = head.counters
        info = MicroBatchInfo.from_rows(shard_input.clock_bodies)
        now = head.clocks.advance(info)
        clocks = BatchClocks(self._window.time, 1, head.clocks, shard_input.pieces, info)
        yield from emit_passthrough(shard_input, counters)
        numbered, head.next_arrival = shard_input.number_arrivals(head.next_arrival)
        packs = [pack for pack, _ in numbered]
        waiting = WaitingMessages(self._store, head, self._window.time.allowed_lateness)
        next_end: int | None = None
        clock = NEVER
        if self._window.sorts_by_time:
            waiting.take(packs, clocks)
            yield from waiting.drop_late(counters, self._keep_dropped)
            clock = clocks.finish(info.backlog)
            next_end = find_next_end(self._window, clock)
            until = self._find_release_time(clock, info.ended)
            yield from _count_released(waiting.release(until), counters)
        else:
            # What has waited before the config said otherwise goes ahead.
            yield from _count_released(waiting.release(FOREVER), counters)
            for cluster in _cluster_overlapping(packs):
                emission = self._make_emission(cluster, clocks)
                counters.taken += len(emission.messages)
                yield from _count_released(emission, counters)
            clock = clocks.finish(info.backlog)
        waiting.commit()
        head.write(self._store)
        return Status(
            now=now,
            closed_until=None,
            counters=counters,
            held=waiting.held_count,
            held_bytes=waiting.held_bytes,
            open=(),
            next_due=None,
            newest_end=None,
            closed=(),
            log=waiting.log_lines(),
            open_windows=0,
            next_end=next_end,
            watermark=None if clock == NEVER else clock,
            dropped=(*shard_input.dropped_samples(), *waiting.list_late()),
        )

    def _find_release_time(self, clock: int, is_ended: bool) -> int:
        """Return the event time up to which messages go on, ns; `NEVER` for none."""
        time = self._window.time
        if is_ended and time.end_of_input == "flush":
            return FOREVER
        return NEVER if clock == NEVER else clock - time.allowed_lateness

    def _make_emission(self, cluster: Sequence[IncomingPack], clocks: BatchClocks) -> KeyedEmission:
        """Return the messages of packs that lie among each other, in order of arrival."""
        builder = MessageBuilder({}, self._decoded)
        messages: Batch = []
        keys: list[bytes] = []
        times: list[int] = []
        arrivals: list[Ints] = []
        for body, shift, header in cluster:
            pack = Pack(body, shift)
            messages += builder.build_messages(pack.payloads(), pack.metas, pack.meta_ids)
            counts = np.diff(pack.starts).tolist()
            names = pack.keys or [b""]
            keys += chain.from_iterable(map(repeat, names, counts))
            times += _effective_times(pack, clocks.watermark_before(header.first))
            arrivals.append(pack.arrivals)
        order = np.argsort(np.concatenate(arrivals), kind="stable").tolist()
        return KeyedEmission.of_messages(
            [messages[at] for at in order], [keys[at] for at in order], [times[at] for at in order]
        )


def _count_released(emission: KeyedEmission | None, counters: Counters) -> Iterator[Emission]:
    """Give an emission if there is one, and count its messages."""
    if emission is None:
        return
    count = len(emission.messages)
    counters.released += count
    counters.emitted_windows += count
    counters.emitted_messages += count
    yield emission


def _effective_times(pack: Pack, watermark: int) -> list[int]:
    """Return by message the clock after it: its event time, or the largest before it."""
    assert pack.times is not None
    times = pack.times if pack.lags is None else pack.times + pack.lags
    if watermark != NEVER:
        times = np.maximum(times, min(watermark, FOREVER))
    effective: list[int] = times.tolist()
    return effective


def _cluster_overlapping(packs: Sequence[IncomingPack]) -> Iterator[list[IncomingPack]]:
    """Give packs, which are in order, together with those that overlap them in arrival."""
    cluster: list[IncomingPack] = []
    until = 0
    for pack in packs:
        first, last = pack.header.first + pack.shift, pack.header.last + pack.shift
        if cluster and first > until:
            yield cluster
            cluster = []
        until = last if not cluster else max(until, last)
        cluster.append(pack)
    if cluster:
        yield cluster
