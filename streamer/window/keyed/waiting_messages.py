"""Messages that wait for those before them: they go on in the order of their event times.

A message waits until the clock is `allowed_lateness` beyond its time: then none can come before it
any more that is not late. Waiting messages are kept as packs, as those of windows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamer.core.message import Batch
from streamer.window.contract import Counters, DroppedEntry, Emission, KeyedEmission, LogLine
from streamer.window.keyed.clocks import BatchClocks
from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.late_messages import DroppedRow, LateMessages
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.keyed.message_store import MessageStore
from streamer.window.keyed.state import MIN_TIME_NS, NEVER
from streamer.window.pack.message_columns import MessageBuilder
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.int_codec import Ints
from streamer.window.state.pane_store import IncomingPack
from streamer.window.state_store import StateStore


class WaitingMessages:
    """The waiting messages of a shard in one micro-batch."""

    def __init__(self, store: StateStore, head: KeyedHead, lateness: int) -> None:
        """Open what the head of the shard's state lists.

        Args:
            store: the shard's state.
            head: its head; `commit` updates it.
            lateness: the allowed lateness, ns.
        """
        self._head = head
        self._lateness = lateness
        self._messages = MessageStore(store, False, head.packs, head.next_pack)
        self._late = LateMessages()

    @property
    def held_count(self) -> int:
        """Number of messages that wait."""
        return self._messages.held_count

    @property
    def held_bytes(self) -> int:
        """About how many bytes of payload they have."""
        return self._messages.held_bytes

    def take(self, packs: Sequence[IncomingPack], clocks: BatchClocks) -> None:
        """Take the messages of this micro-batch, those that are late apart."""
        for body, shift, header in packs:
            watermark = clocks.watermark_before(header.first)
            partition = clocks.partition_of(header.first)
            loaded = self._messages.add_pack(Pack(body, shift), body, shift, watermark, partition)
            rows = self._find_late(loaded, watermark)
            arrivals = loaded.pack.arrivals[rows].tolist()
            for arrival, row in zip(arrivals, rows.tolist(), strict=True):
                clock = loaded.watermark_before(row)
                self._late.append(DroppedRow(arrival, loaded, row, clock))
            self._head.counters.taken += len(loaded.times) - len(rows)

    def drop_late(self, counters: Counters, sends_to_late_output: bool) -> Iterator[Emission]:
        """Count and free what was late; see `LateMessages.drop_all`."""
        return self._late.drop_all(counters, sends_to_late_output)

    def release(self, until: int) -> KeyedEmission | None:
        """Free the messages up to an event time, and return them in order; None without any.

        Args:
            until: the last event time, ns.
        """
        builder = MessageBuilder({})
        messages: Batch = []
        keys: list[bytes] = []
        times: list[Ints] = []
        arrivals: list[Ints] = []
        for loaded in self._messages.packs_between(MIN_TIME_NS, until):
            rows = np.flatnonzero(~loaded.freed & (loaded.times <= until))
            if not len(rows):
                continue
            pack, payloads, selected = loaded.pack, loaded.payloads, rows.tolist()
            ids = None if pack.meta_ids is None else pack.meta_ids[rows]
            messages += builder.build_messages([payloads[row] for row in selected], pack.metas, ids)
            names = pack.keys or [b""]
            groups = np.repeat(np.arange(len(names)), np.diff(pack.starts))[rows]
            keys += [names[group] for group in groups.tolist()]
            times.append(loaded.times[rows])
            arrivals.append(pack.arrivals[rows])
            loaded.free(rows)
        if not messages:
            return None
        together = np.concatenate(times)
        order = np.lexsort((np.concatenate(arrivals), together)).tolist()
        return KeyedEmission.of_messages(
            [messages[at] for at in order],
            [keys[at] for at in order],
            together[order].tolist(),
        )

    def commit(self) -> None:
        """Write what still waits; the micro-batch has ended."""
        self._messages.commit()
        self._head.packs, self._head.next_pack = self._messages.head_entries()

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return a warning of late messages, if there were any."""
        return self._late.log_lines()

    def list_late(self) -> tuple[DroppedEntry, ...]:
        """Return the first of the late messages; see `LateMessages.list_samples`."""
        return self._late.list_samples()

    def _find_late(self, loaded: LoadedPack, watermark: int) -> Ints:
        """Return the rows of messages that the clock before them was too far beyond."""
        late = np.zeros(len(loaded.times), np.bool_)
        if watermark != NEVER and watermark - self._lateness > MIN_TIME_NS:
            late |= loaded.times < watermark - self._lateness
        if loaded.pack.lags is not None:
            late |= loaded.pack.lags > self._lateness
        rows: Ints = np.flatnonzero(late)
        return rows
