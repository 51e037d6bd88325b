"""Stage 1 of windows that follow event times, and of count windows, which have none.

A message's filter, event time and key are found here, and what its piece knows of the clock before
it. What earlier micro-batches and other pieces did to the clock is added by the shards.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import format_rfc3339, parse_event_time
from streamer.core.value import DELETED, NOTHING
from streamer.window.aggregate.accumulator import ValueColumn, select_values
from streamer.window.assign.batch_packer import BatchPacker, MessageGetter
from streamer.window.assign.dropped_messages import DroppedMessages
from streamer.window.assign.pack_builder import PackBuilder
from streamer.window.contract.shuffle_row import RowKind, ShuffleRow
from streamer.window.evaluate.event_time_evaluator import (
    NO_EVENT_TIME,
    EvaluatedMessages,
    EventTimeCache,
    EventTimeEvaluator,
    make_event_time_evaluators,
)
from streamer.window.evaluate.queries import CompiledInterpolation, CompiledMapping, is_now_mapping
from streamer.window.pack.message_columns import EventTimes
from streamer.window.pack.metadata_codec import add_key_spelling, encode_meta
from streamer.window.pack.slots import SLOT_BITS, KeyGroups
from streamer.window.settings.event_time_window import WINDOW_KEY_ID, EventWindow
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.panes import panes_of_times
from streamer.window.settings.window_types import Count

_NO_TIME_TEXT: Final = "its timestamp_mapping gave no time"
_NO_KEY_TEXT: Final = "its key_mapping gave no key"
_FUTURE_TEXT: Final = "its time is further ahead than max_ahead allows"
_MIN_TIME_NS: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class BufferMappings:
    """The compiled mappings of a buffer.

    Attributes:
        timestamp: gives a message's event time; None where windows have none.
        key: gives the window's key, a mapping; or the group by which the pipeline goes on, an
            interpolation or a mapping; None without.
        filter: true keeps a message; None without.
    """

    timestamp: CompiledMapping | None
    key: CompiledInterpolation | CompiledMapping | None = None
    filter: CompiledMapping | None = None


class EvaluatedChunk(NamedTuple):
    """What was seen of a chunk: of each message, and what it brings to a fold if there is one."""

    evaluated: EvaluatedMessages
    columns: list[ValueColumn] | None


class EventPacker(BatchPacker[EvaluatedChunk]):
    """Packs the messages of one piece; make one for every piece of a micro-batch.

    Attributes:
        targets: by slot, the kind and pane of its row; slot 0 is none.
        batch_time: the micro-batch's time, ns.
    """

    def __init__(
        self,
        window: EventWindow,
        shards: int,
        mappings: BufferMappings,
        piece: int = 0,
        partition: bytes = b"",
        keep_dropped: bool = False,
        aggregation: PreAggregation | None = None,
        aggregates_after: int | None = None,
        kind: RowKind = RowKind.PACK,
    ) -> None:
        """Prepare.

        Args:
            window: the window's settings.
            shards: how many shards there are; without a key, shard 0 gets everything.
            mappings: the buffer's mappings.
            piece: the smallest arrival number of the piece.
            partition: names the source's partition that the piece is from.
            keep_dropped: hand dropped messages on, for `late_output`.
            aggregation: what is asked of a window's messages, when it folds.
            aggregates_after: an event time, ns: messages up to it are kept as they are; None for
                none.
            kind: of the rows: of which side of a join the piece is.
        """
        super().__init__()
        self._window = window
        self._kind = kind
        self._shards = shards
        self._mappings = mappings
        self._piece = piece
        self._partition = partition
        self.targets: list[tuple[RowKind, int]] = [(RowKind.DROPPED, 0)]
        self.batch_time = 0
        self._slot_of: dict[tuple[RowKind, int], int] = {}
        self._close_times: dict[int, int] = {}
        key = mappings.key
        key_id = None if key is None else zlib.crc32(key.text.encode())
        if window.keyed:
            key_id = WINDOW_KEY_ID
        # Without a window key there is one window for all, and so one shard.
        spread = shards if window.keyed else 1
        self._groups = None if key is None else KeyGroups(spread, not hasattr(key, "text_of"))
        self._times = EventTimeCache()
        self._is_count_based = isinstance(window.kind, Count)
        timestamp = None if self._is_count_based else mappings.timestamp
        self._all_evaluators = make_event_time_evaluators(
            timestamp, key, mappings.filter, self._times, self._groups
        )
        self._drops = DroppedMessages(keep_dropped)
        by_panes = window.strategy == "panes"
        self._builder = PackBuilder(
            self, self._groups, key_id, aggregation, aggregates_after, only_max_times=by_panes
        )
        self._panes = window.panes
        # Whether the piece's own clock matters: a key's own is known by the shards alone.
        self._tracks_clock = window.time.clock == "stream" and window.time.clock_scope == "stream"
        self._watermark = _MIN_TIME_NS
        self._max_event_time: int | None = None

    def take_rows(self) -> list[ShuffleRow]:
        """Take the rows that are finished already, so that they need not be held any longer."""
        return self._builder.take_rows()

    def flush_rows(self) -> Iterator[ShuffleRow]:
        """Finish: give all rows that are left, the counters, and what became of the clock."""
        self._builder.flush()
        yield from self.take_rows()
        yield from self._drops.flush_rows()
        if self._max_event_time is not None:
            for shard in range(self._shards):
                yield ShuffleRow(
                    shard, RowKind.PIECE, self._max_event_time, self._piece, self._partition
                )

    @property
    def _evaluators(self) -> Sequence[EventTimeEvaluator]:
        return self._all_evaluators

    def _set_batch_time(self, batch_time: int) -> None:
        super()._set_batch_time(batch_time)
        self.batch_time = batch_time

    def _flush_if_full(self, size: int) -> None:
        self._builder.flush_if_full(size, self._shards)

    def _evaluate_raws(self, evaluator: EventTimeEvaluator, raws: list[bytes]) -> EvaluatedChunk:
        evaluator.reset()
        pre_aggregator = self._builder.pre_aggregator
        if pre_aggregator is not None:
            _, columns = pre_aggregator.evaluate(evaluator, raws)
            return EvaluatedChunk(evaluator.evaluated, columns)
        evaluator.evaluate(raws if evaluator.parser is None else list(map(evaluator.parser, raws)))
        return EvaluatedChunk(evaluator.evaluated, None)

    def _evaluate_messages(
        self, evaluator: EventTimeEvaluator, raws: list[bytes], messages: list[Message]
    ) -> EvaluatedChunk:
        evaluator.reset()
        pre_aggregator = self._builder.pre_aggregator
        bare = evaluator.parser is None and pre_aggregator is None
        docs: list[Any] = raws if bare else [message.doc for message in messages]
        evaluator.evaluate(docs)
        return EvaluatedChunk(
            evaluator.evaluated,
            None if pre_aggregator is None else pre_aggregator.make_columns(docs),
        )

    def _add_evaluated(
        self,
        raws: list[bytes],
        lengths: Ints,
        evaluated: EvaluatedChunk,
        arrivals: Ints,
        metas: list[bytes],
        message_at: MessageGetter,
        ex: Execution,
    ) -> None:
        results, columns = evaluated
        count = len(raws)
        times = (
            np.array(results.times, np.int64)
            if results.times
            else np.full(count, self._default_time())
        )
        groups = np.array(results.groups, np.int64) if results.groups else np.zeros(count, np.int64)
        if results.other_spellings:
            metas = [
                add_key_spelling(meta, results.other_spellings[index])
                if index in results.other_spellings
                else meta
                for index, meta in enumerate(metas if len(metas) > 1 else metas * count)
            ]
        good = self._drop_invalid(results, times, groups, arrivals, message_at, ex)
        if good is not None:
            selected = np.flatnonzero(good)
            raws = [raws[index] for index in selected.tolist()]
            if len(metas) > 1:
                metas = [metas[index] for index in selected.tolist()]
            lengths, times, groups, arrivals = (
                lengths[good],
                times[good],
                groups[good],
                arrivals[good],
            )
            columns = columns and [select_values(column, selected) for column in columns]
        if raws:
            slots, event_times = self._assign_slots(times)
            self._builder.add(raws, lengths, slots + groups, arrivals, metas, columns, event_times)

    def _drop_invalid(
        self,
        evaluated: EvaluatedMessages,
        times: Ints,
        groups: Ints,
        arrivals: Ints,
        message_at: MessageGetter,
        ex: Execution,
    ) -> NDArray[np.bool_] | None:
        """Drop messages, each for the first reason that there is; return which are left."""
        good: NDArray[np.bool_] | None = None
        if evaluated.kept and not all(evaluated.kept):
            good = np.array(evaluated.kept, np.bool_)
            self._drops.count_filtered(int((~good).sum()))
        if evaluated.reasons:
            bad = times == NO_EVENT_TIME
            if int(bad.sum()) != len(evaluated.reasons):
                raise ValueError("a time is the first that there is: look at it alone")
            reasons = iter(evaluated.reasons)
            for index in np.flatnonzero(bad).tolist():
                why = next(reasons)
                if good is None or good[index]:
                    message = message_at(index)
                    self._drops.add_dropped(
                        "timestamp", _NO_TIME_TEXT, why, message, int(arrivals[index]), ex
                    )
            good = ~bad if good is None else good & ~bad
        limit = self._latest_allowed_time()
        if limit is not None and int(times.max()) > limit:
            ahead = times > limit
            for index in np.flatnonzero(ahead if good is None else ahead & good).tolist():
                self._drop_future(int(times[index]), message_at(index), int(arrivals[index]), ex)
            good = ~ahead if good is None else good & ~ahead
        keyless = (
            self._groups.keyless_group if self._groups is not None and self._window.keyed else None
        )
        if keyless is not None:
            without = groups == keyless
            for index in np.flatnonzero(without if good is None else without & good).tolist():
                self._drop_keyless("it was deleted", message_at(index), int(arrivals[index]), ex)
            good = ~without if good is None else good & ~without
        return good

    def _assign_slots(self, times: Ints) -> tuple[Ints, EventTimes]:
        """Give messages their slots and their lags, and move the piece's clock."""
        count = len(times)
        lags = np.zeros(count, np.int64)
        max_time = int(times.max())
        self._max_event_time = (
            max_time if self._max_event_time is None else max(self._max_event_time, max_time)
        )
        before: Ints | None = None
        if self._tracks_clock:
            before = np.maximum.accumulate(np.concatenate((np.array([self._watermark]), times)))[
                :-1
            ]
            self._watermark = max(self._watermark, max_time)
            late = before > times
            if late.any():
                lags[late] = before[late] - times[late]
        panes = np.zeros_like(times) if self._is_count_based else panes_of_times(self._panes, times)
        least, most = int(panes.min()), int(panes.max())
        if least == most:
            distinct, places = [least], np.zeros(count, np.int64)
        else:
            distinct_panes, places = np.unique(panes, return_inverse=True)
            distinct = distinct_panes.tolist()
        slots = np.array([self._slot_of_row(self._kind, pane) for pane in distinct], np.int64)[
            places
        ]
        if before is not None and self._window.strategy == "panes" and lags.any():
            self._separate_disordered(slots, before, distinct, places)
        return slots, EventTimes(times, lags)

    def _separate_disordered(
        self, slots: Ints, before: Ints, panes: list[int], places: Ints
    ) -> None:
        """Give other slots to messages of which a window had closed before they came."""
        dues = np.array([self._first_close_time(pane) for pane in panes], np.int64)[places]
        apart = before >= dues
        for place in np.unique(places[apart]).tolist():
            slots[apart & (places == place)] = self._slot_of_row(RowKind.DISORDERED, panes[place])

    def _first_close_time(self, pane: int) -> int:
        """Return when the first window of a pane closes."""
        close_time = self._close_times.get(pane)
        if close_time is None:
            first = self._window.first_close_time(pane)
            close_time = self._close_times[pane] = min(first, 2**63 - 1)
        return close_time

    def _slot_of_row(self, kind: RowKind, pane: int) -> int:
        place = (kind, pane)
        slot = self._slot_of.get(place)
        if slot is None:
            slot = self._slot_of[place] = len(self.targets) << SLOT_BITS
            self.targets.append(place)
        return slot

    def _default_time(self) -> int:
        return 0 if self._is_count_based else self.batch_time

    def _latest_allowed_time(self) -> int | None:
        ahead = self._window.time.max_ahead
        return None if ahead is None or self._is_count_based else self.batch_time + ahead

    def _drop_future(self, time: int, message: Message, arrival: int, ex: Execution) -> None:
        self._drops.add_dropped("future", _FUTURE_TEXT, format_rfc3339(time), message, arrival, ex)

    def _drop_keyless(self, why: str, message: Message, arrival: int, ex: Execution) -> None:
        self._drops.add_dropped("key", _NO_KEY_TEXT, why, message, arrival, ex)

    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        if message.error is not None:
            self._drops.add_failed(message, arrival)
            return
        # Before a group is asked for, since it may forget them.
        self._flush_if_full(len(message.raw))
        if not self._passes_filter(batch, index, ex):
            return
        time = self._event_time_of(batch, index, message, arrival, ex)
        if time is None:
            return
        limit = self._latest_allowed_time()
        if limit is not None and time > limit:
            self._drop_future(time, message, arrival, ex)
            return
        group = self._group_of(batch, index, message, arrival, ex)
        if group is None:
            return
        slots, event_times = self._assign_slots(np.array([time], np.int64))
        meta = encode_meta(message.meta)
        if self._groups is not None and self._groups.other_spellings:
            meta = add_key_spelling(meta, self._groups.other_spellings.pop())
        self._builder.add_one(message, int(slots[0]) + group, arrival, meta, event_times)

    def _passes_filter(self, batch: Batch, index: int, ex: Execution) -> bool:
        if self._mappings.filter is None:
            return True
        try:
            result = self._mappings.filter.query(batch, index, ex)
        except Exception as e:  # what the filter ran into does not matter: it is not true
            result, why = None, str(e) or repr(e)
        else:
            why = f"got {type(result).__name__}"
        if result is True:
            return True
        if result is not False:
            self._drops.warn_filter_failed(why, ex)
        self._drops.count_filtered(1)
        return False

    def _event_time_of(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> int | None:
        timestamp = self._mappings.timestamp
        if timestamp is None or self._is_count_based or is_now_mapping(timestamp):
            return self._default_time()
        try:
            return parse_event_time(timestamp.query(batch, index, ex))
        except Exception as e:  # the message alone is dropped, whatever its mapping ran into
            self._drops.add_dropped(
                "timestamp", _NO_TIME_TEXT, str(e) or repr(e), message, arrival, ex
            )
            return None

    def _group_of(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> int | None:
        """Return the group of a message's key; None when it was dropped since it has none."""
        key, groups = self._mappings.key, self._groups
        if groups is None or key is None:
            return 0
        groups.other_spellings.clear()
        try:
            if hasattr(key, "text_of"):
                return groups.group_of_result(key.text_of(batch, index, ex))
            value = key.query(batch, index, ex)
            if value is DELETED or value is NOTHING:
                raise ValueError("it was deleted")
            return groups.group_of_result(value)
        except Exception as e:
            if self._window.keyed:
                self._drop_keyless(str(e) or repr(e), message, arrival, ex)
                return None
            # The processor that groups by this key will meet it again and say so.
            return groups.group_of_bytes(b"")
