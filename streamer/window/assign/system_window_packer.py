"""Stage 1 of `system_window`: every message to its pane and shard, by what its mappings say."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import parse_event_time
from streamer.window.aggregate.accumulator import ValueColumn, select_values
from streamer.window.assign.batch_packer import BatchPacker, MessageGetter
from streamer.window.assign.dropped_messages import DroppedMessages
from streamer.window.assign.pack_builder import PackBuilder
from streamer.window.contract.shuffle_row import RowKind, ShuffleRow
from streamer.window.evaluate.queries import CompiledInterpolation, CompiledMapping
from streamer.window.evaluate.slot_evaluator import SlotEvaluator, make_slot_evaluators
from streamer.window.pack.metadata_codec import encode_meta
from streamer.window.pack.slots import INVALID_SLOT, SLOT_BITS, KeyGroups, PaneSlots
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.system_window import SystemWindow

NO_TIME_TEXT = "its timestamp_mapping gave no time"


class SlottedColumns(NamedTuple):
    """What was seen of messages.

    Attributes:
        codes: by message, slot and group (`stamps.SLOT_BITS`).
        columns: what they bring to a fold, if there is one.
        reasons: why messages of the slot `BAD` have no time, in their order.
    """

    codes: Ints
    columns: list[ValueColumn] | None
    reasons: list[str]


class SystemWindowPacker(BatchPacker[SlottedColumns]):
    """Packs the messages of one task; make one for every task of a micro-batch."""

    def __init__(
        self,
        window: SystemWindow,
        shards: int,
        timestamp: CompiledMapping,
        key: CompiledInterpolation | CompiledMapping | None = None,
        keep_dropped: bool = False,
        aggregation: PreAggregation | None = None,
        aggregates_after: int | None = None,
    ) -> None:
        """Prepare.

        Args:
            window: the window's settings.
            shards: how many shards there are; without a key, shard 0 gets everything.
            timestamp: gives a message's event time.
            key: gives the group, and by it the shard, of a message: an interpolation its text, a
                mapping its value as JSON. A message whose key fails goes to the empty key.
            keep_dropped: hand dropped messages on, for `late_output`.
            aggregation: what is asked of a window's messages, when it folds.
            aggregates_after: an event time, ns: messages up to it are kept as they are, since
                windows that hold them were begun under another mapping; None for no such time.
        """
        super().__init__()
        self._window = window
        self._shards = shards
        self._timestamp = timestamp
        self._key = key
        key_id = None if key is None else zlib.crc32(key.text.encode())
        self._groups = None if key is None else KeyGroups(shards, not hasattr(key, "text_of"))
        self._slots = PaneSlots(window.grid, 0, timestamp.uses.now)
        self._drops = DroppedMessages(keep_dropped)
        self._all_evaluators = make_slot_evaluators(timestamp, key, self._slots, self._groups)
        self._builder = PackBuilder(
            self._slots, self._groups, key_id, aggregation, aggregates_after
        )

    def take_rows(self) -> list[ShuffleRow]:
        """Take the rows that are finished already, so that they need not be held any longer."""
        return self._builder.take_rows()

    def flush_rows(self) -> Iterator[ShuffleRow]:
        """Finish: give all rows that are left, and the counters."""
        self._builder.flush()
        yield from self.take_rows()
        yield from self._drops.flush_rows()
        if self._window.end_of_input == "flush" and self._shards > 1:
            yield from self._newest_rows()

    @property
    def _evaluators(self) -> Sequence[SlotEvaluator]:
        return self._all_evaluators

    def _set_batch_time(self, batch_time: int) -> None:
        super()._set_batch_time(batch_time)
        self._slots.start_batch(batch_time)

    def _flush_if_full(self, size: int) -> None:
        self._builder.flush_if_full(size, self._shards)

    def _evaluate_raws(self, evaluator: SlotEvaluator, raws: list[bytes]) -> SlottedColumns:
        self._slots.reasons.clear()
        pre_aggregator = self._builder.pre_aggregator
        if pre_aggregator is None:
            codes, columns = np.array(evaluator.evaluate_raws(raws), np.int64), None
        else:
            codes, columns = pre_aggregator.evaluate(evaluator, raws)
        return SlottedColumns(codes, columns, list(self._slots.reasons))

    def _evaluate_messages(
        self, evaluator: SlotEvaluator, raws: list[bytes], messages: list[Message]
    ) -> SlottedColumns:
        self._slots.reasons.clear()
        pre_aggregator = self._builder.pre_aggregator
        bare = evaluator.parser is None and pre_aggregator is None
        docs: list[Any] = raws if bare else [message.doc for message in messages]
        codes = np.array(evaluator.evaluate(docs), np.int64)
        columns = None if pre_aggregator is None else pre_aggregator.make_columns(docs)
        return SlottedColumns(codes, columns, list(self._slots.reasons))

    def _add_evaluated(
        self,
        raws: list[bytes],
        lengths: Ints,
        evaluated: SlottedColumns,
        arrivals: Ints,
        metas: list[bytes],
        message_at: MessageGetter,
        ex: Execution,
    ) -> None:
        codes, columns, reasons = evaluated
        if reasons:
            good = codes >> SLOT_BITS != INVALID_SLOT
            for index, reason in zip(np.flatnonzero(~good).tolist(), reasons, strict=True):
                self._drops.add_dropped(
                    "timestamp", NO_TIME_TEXT, reason, message_at(index), int(arrivals[index]), ex
                )
            selected = np.flatnonzero(good)
            raws = [raws[index] for index in selected.tolist()]
            if len(metas) > 1:
                metas = [metas[index] for index in selected.tolist()]
            lengths, codes, arrivals = lengths[good], codes[good], arrivals[good]
            columns = columns and [select_values(column, selected) for column in columns]
        if raws:
            self._builder.add(raws, lengths, codes, arrivals, metas, columns)

    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        if message.error is not None:
            self._drops.add_failed(message, arrival)
            return
        try:
            time = parse_event_time(self._timestamp.query(batch, index, ex))
        except Exception as e:  # the message alone is dropped, whatever its mapping ran into
            self._drops.add_dropped(
                "timestamp", NO_TIME_TEXT, str(e) or repr(e), message, arrival, ex
            )
            return
        raw, meta = message.raw, encode_meta(message.meta)
        self._flush_if_full(len(raw) + len(meta))
        code = self._slots.code_of_time(time) + self._group_of(batch, index, ex)
        self._builder.add_one(message, code, arrival, meta)

    def _group_of(self, batch: Batch, index: int, ex: Execution) -> int:
        if self._groups is None or self._key is None:
            return 0
        try:
            if hasattr(self._key, "text_of"):
                return self._groups.group_of_result(self._key.text_of(batch, index, ex))
            return self._groups.group_of_result(self._key.query(batch, index, ex))
        except Exception:  # the processor that groups by this key will meet it again and say so
            return self._groups.group_of_bytes(b"")

    def _newest_rows(self) -> Iterator[ShuffleRow]:
        """Tell every shard of the newest pane of each kind: a flush moves all horizons alike."""
        newest: dict[RowKind, int] = {}
        for kind, pane in self._slots.targets[1:]:
            newest[kind] = max(pane, newest.get(kind, pane))
        for kind, pane in newest.items():
            for shard in range(self._shards):
                yield ShuffleRow(shard, RowKind.NEWEST_PANE, pane, 0, bytes([kind]))
