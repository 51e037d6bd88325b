"""Rows of packs: what stage 1 holds of a task's messages, and those that go into no window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.window.aggregate.accumulator import ValueColumn, select_values
from streamer.window.aggregate.pre_aggregator import PreAggregator
from streamer.window.contract import MAX_DROPPED_SAMPLES, RowKind, ShuffleRow, show_payload
from streamer.window.evaluate.message_slots import SlotAssigner
from streamer.window.pack.message_columns import (
    GROUP_MASK,
    SLOT_BITS,
    EventTimes,
    KeyGroups,
    MessageColumns,
)
from streamer.window.pack.metadata_codec import encode_meta
from streamer.window.pack.pack_codec import MAX_PACK_BYTES, lengths_of
from streamer.window.settings.int_codec import Ints

DROP_REASON: Final = "window_drop_reason"
"""The metadata key by which `late_output` tells why it got a message."""
_MAX_WARNINGS: Final = 10


class PackBuilder:
    """Holds messages, and makes rows of them.

    Attributes:
        pre_aggregator: aggregates messages; None when they are held whole.
    """

    def __init__(
        self,
        slots: SlotAssigner,
        groups: KeyGroups | None,
        key_id: int | None,
        aggregation: PreAggregation | None,
        aggregates_after: int | None,
        only_max_times: bool = False,
    ) -> None:
        """Prepare.

        Args:
            slots: where messages go.
            groups: their groups; None without a key.
            key_id: identifies the key's expression; None without one.
            aggregation: the aggregates of a window's messages; None to hold them whole.
            aggregates_after: an event time, ns: messages up to it are held whole; None for none.
            only_max_times: keep of event times but the largest of each group.
        """
        self.pre_aggregator = None if aggregation is None else PreAggregator(aggregation, key_id)
        self._slots = slots
        self._groups = groups
        self._key_id = key_id or 0
        self._aggregates_after = aggregates_after
        self._max_times_kind = RowKind.PACK if only_max_times else None
        self._messages = MessageColumns()
        self._ready_rows: list[ShuffleRow] = []

    def add(
        self,
        raws: Sequence[bytes],
        lengths: Ints,
        codes: Ints,
        arrivals: Ints,
        metas: list[bytes],
        columns: list[ValueColumn] | None,
        event_times: EventTimes | None = None,
    ) -> None:
        """Hold messages.

        Args:
            raws: payloads.
            lengths: by message, of its payload.
            codes: by message, slot and group (`SLOT_BITS`).
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            columns: their values for pre-aggregation; None when they are to be held whole.
            event_times: their event times, for windows that follow them.
        """
        if self.pre_aggregator is None or columns is None:
            self._messages.add(raws, lengths, codes, arrivals, metas, event_times)
            return
        stays = self._find_whole(codes)
        if stays is None:
            times = None if event_times is None else event_times.times
            self.pre_aggregator.add(raws, codes, arrivals, metas, columns, times)
        else:
            whole, aggregated = np.flatnonzero(stays), np.flatnonzero(~stays)
            some, of = _select_messages(raws, metas, whole)
            of_these = event_times and event_times.select(whole)
            self._messages.add(some, lengths[whole], codes[whole], arrivals[whole], of, of_these)
            some, of = _select_messages(raws, metas, aggregated)
            brings = [select_values(column, aggregated) for column in columns]
            times = None if event_times is None else event_times.times[aggregated]
            self.pre_aggregator.add(
                some, codes[aggregated], arrivals[aggregated], of, brings, times
            )

    def add_one(
        self,
        message: Message,
        code: int,
        arrival: int,
        meta: bytes,
        event_times: EventTimes | None = None,
    ) -> None:
        """Hold a message that came by itself."""
        raw = message.raw
        if self.pre_aggregator is not None:
            with suppress(MessageError):  # what is no document is held whole
                columns = self.pre_aggregator.make_columns([message.doc])
                one = np.array([code], np.int64)
                lengths, arrivals = lengths_of([raw]), np.array([arrival])
                self.add([raw], lengths, one, arrivals, [meta], columns, event_times)
                return
        self._messages.add_one(raw, code, arrival, meta, event_times)

    def flush_if_full(self, size: int, shards: int) -> None:
        """Make rows of what is held if so many more bytes would be too many."""
        rows = (len(self._slots.targets) - 1) * (shards if self._groups is not None else 1)
        full = self.pre_aggregator is not None and self.pre_aggregator.is_full
        if full or not self._messages.can_take(size, rows):
            self.flush()

    def flush(self) -> None:
        """Make rows of all that is held."""
        targets = self._slots.targets
        rows = self._messages.flush_rows(targets, self._groups, self._key_id, self._max_times_kind)
        self._ready_rows.extend(rows)
        self._messages = MessageColumns()
        if self.pre_aggregator is not None:
            self._ready_rows.extend(self.pre_aggregator.flush_rows(targets, self._groups))
        if self._groups is not None:
            self._groups.reset_if_full()

    def take_rows(self) -> list[ShuffleRow]:
        """Take the rows that were made."""
        rows, self._ready_rows = self._ready_rows, []
        return rows

    def _find_whole(self, codes: Ints) -> NDArray[np.bool_] | None:
        """Return which messages are held whole; None when all are pre-aggregated."""
        stays: NDArray[np.bool_] | None = None
        if self._groups is not None and self._groups.keyless_group is not None:
            stays = (codes & GROUP_MASK) == self._groups.keyless_group
        targets = self._slots.targets
        if any(kind == RowKind.DISORDERED for kind, _ in targets):
            # They may be in some windows of their pane only.
            apart = np.array([kind == RowKind.DISORDERED for kind, _ in targets])[
                codes >> SLOT_BITS
            ]
            stays = apart | (False if stays is None else stays)
        if self._aggregates_after is not None:
            after = self._aggregates_after
            early = np.array([self._pane_time(*place) <= after for place in targets])
            stays = early[codes >> SLOT_BITS] | (False if stays is None else stays)
        return stays if stays is not None and stays.any() else None

    def _pane_time(self, kind: RowKind, pane: int) -> int:
        return pane if kind in (RowKind.PACK, RowKind.DISORDERED) else self._slots.batch_time


def _select_messages(
    raws: Sequence[bytes], metas: list[bytes], selected: Ints
) -> tuple[list[bytes], list[bytes]]:
    indices = selected.tolist()
    of = metas if len(metas) == 1 else [metas[index] for index in indices]
    return [raws[index] for index in indices], of


class DroppedMessages:
    """Counts and, where asked, keeps the messages that stage 1 lets pass by or drops."""

    def __init__(self, keep_dropped: bool) -> None:
        self._keep = keep_dropped
        self._columns = {RowKind.FAILED: MessageColumns(), RowKind.DROPPED: MessageColumns()}
        self._ready_rows: list[ShuffleRow] = []
        self._dropped: Counter[str] = Counter()
        self._filtered = 0
        self._warned: Counter[str] = Counter()
        self._samples: list[tuple[str, str, str]] = []
        self._ex: Execution | None = None

    def add_failed(self, message: Message, arrival: int) -> None:
        """Let a message pass that was marked as failed."""
        self._add(RowKind.FAILED, message, arrival, encode_meta(message.meta, message.error))

    def add_dropped(
        self, reason: str, what: str, why: str, message: Message, arrival: int, ex: Execution
    ) -> None:
        """Drop a message, and warn of the first few.

        Args:
            reason: the reason by which it is counted (`timestamp`, `future`, `key`).
            what: what was wrong, which is the same for all messages.
            why: what was found in this one.
            message: the message.
            arrival: its arrival number.
            ex: for warnings.
        """
        self._dropped[reason] += 1
        self._warn(reason, f"was dropped, {what}", why, ex)
        if self._dropped[reason] <= MAX_DROPPED_SAMPLES:
            self._samples.append((reason, show_payload(message.raw), f"{what}: {why}"))
        if self._keep:
            meta = encode_meta({**message.meta, DROP_REASON: reason})
            self._add(RowKind.DROPPED, message, arrival, meta)

    def count_filtered(self, count: int) -> None:
        """Count messages for which the filter was not true."""
        self._filtered += count

    def warn_filter_failed(self, why: str, ex: Execution) -> None:
        """Warn of a filter that failed, or gave no boolean, and so keeps nothing."""
        self._warn("filter", "was filtered out, its filter gave no boolean", why, ex)

    def warn_condition_failed(self, name: str, why: str, ex: Execution) -> None:
        """Warn of a condition that failed, or gave no boolean, and so does not hold."""
        self._warn(name, f"was taken, but its {name} gave no boolean", why, ex)

    def flush_rows(self) -> Iterator[ShuffleRow]:
        """Give everything to shard 0, and the counters; sum up the warnings left out."""
        for reason, count in self._warned.items():
            if self._ex is not None and count > _MAX_WARNINGS:
                more = count - _MAX_WARNINGS
                text = f"{more} more messages were dropped for the same reason: {reason}"
                self._ex.log("WARN", text, {"reason": reason, "messages": more})
        for kind in self._columns:
            self._flush(kind)
        yield from self._ready_rows
        if self._dropped or self._filtered:
            counts: dict[str, Any] = {"dropped": self._dropped, "samples": self._samples}
            if self._filtered:
                counts["filtered"] = self._filtered
            yield ShuffleRow(0, RowKind.COUNT, 0, 0, orjson.dumps(counts))

    def _warn(self, reason: str, what: str, why: str, ex: Execution) -> None:
        self._ex = ex
        self._warned[reason] += 1
        if self._warned[reason] <= _MAX_WARNINGS:
            ex.log("WARN", f"a message {what}: {why}", {"reason": reason})

    def _add(self, kind: RowKind, message: Message, arrival: int, meta: bytes) -> None:
        columns = self._columns[kind]
        columns.add_one(message.raw, 0, arrival, meta)
        if columns.size >= MAX_PACK_BYTES:
            self._flush(kind)

    def _flush(self, kind: RowKind) -> None:
        self._ready_rows.extend(self._columns[kind].flush_rows([(kind, 0)], None, 0))
        self._columns[kind] = MessageColumns()
