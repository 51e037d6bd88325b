"""Stage 1 of windows: each message gets its pane and shard, or is dropped, and is packed.

Thousands of messages are evaluated together, and fewer around one that fails: what is decided for a
chunk must be what would be decided for each message alone. So a chunk with a message that makes a
mapping fail is taken again in smaller ones, and the few around it one by one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.json.bulk import payloads_of
from streamer.core.json.columns.column_reader import ColumnMode
from streamer.core.json.columns.line_block import LineRange
from streamer.core.message import Batch, Message
from streamer.core.timestamps import format_rfc3339, parse_event_time
from streamer.core.value import DELETED, NOTHING
from streamer.window.aggregate.accumulator import select_values
from streamer.window.assign.column_evaluator import ColumnEvaluator, EvaluatedRun
from streamer.window.assign.evaluated_chunk import (
    EvaluatedChunk,
    evaluate_messages,
    evaluate_raws,
)
from streamer.window.assign.message_marks import MessageMarks
from streamer.window.assign.pack_builder import DroppedMessages, PackBuilder
from streamer.window.contract import ShuffleRow
from streamer.window.evaluate.column_plan import ColumnPlan, plan_columns
from streamer.window.evaluate.message_slots import (
    NO_EVENT_TIME,
    EvaluatedMessages,
    EventTimeCache,
    PieceOrigin,
    make_message_evaluators,
    make_slot_assigner,
)
from streamer.window.evaluate.queries import BufferMappings, is_now_mapping
from streamer.window.pack.message_columns import KeyGroups
from streamer.window.pack.metadata_codec import add_key_spelling, encode_meta
from streamer.window.pack.pack_codec import lengths_of
from streamer.window.settings.event_time_window import WINDOW_KEY_ID
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.window import Window

_CHUNK_MESSAGES: Final = 4096
_MIN_CHUNK_MESSAGES: Final = 64
_NO_TIME_TEXT: Final = "its timestamp_mapping gave no time"
_NO_KEY_TEXT: Final = "its key_mapping gave no key"
_FUTURE_TEXT: Final = "its time is further ahead than max_ahead allows"
_ORIGIN: Final = PieceOrigin()


_MessageGetter = Callable[[int], Message]
"""Gives a message of a chunk, by its place."""


class Packer:
    """Packs the messages of one piece; make one for every piece of a micro-batch."""

    def __init__(
        self,
        window: Window,
        shards: int,
        mappings: BufferMappings,
        origin: PieceOrigin = _ORIGIN,
        keep_dropped: bool = False,
        aggregation: PreAggregation | None = None,
        aggregates_after: int | None = None,
        columns: ColumnMode = "never",
    ) -> None:
        """Prepare.

        Args:
            window: the window's settings.
            shards: how many shards there are; without a key, shard 0 gets everything.
            mappings: the buffer's mappings. A message whose key fails is dropped where the key is
                the window's own; where it is a group of the pipeline, it goes to the empty key.
            origin: of the piece.
            keep_dropped: hand dropped messages on, for `late_output`.
            aggregation: what is asked of a window's messages, when it pre-aggregates.
            aggregates_after: an event time, ns: messages up to it are kept as they are, since
                windows that hold them were begun under another mapping; None for no such time.
            columns: when fields are read as columns, where that is possible.
        """
        key, timestamp = mappings.key, None if window.count_based else mappings.timestamp
        # Without a window key there is one window for all, and so one shard.
        spread = shards if window.keyed or window.spreads_groups else 1
        groups = None if key is None else KeyGroups(spread, not key.gives_text)
        key_id = None if key is None else zlib.crc32(key.text.encode())
        slots = make_slot_assigner(window, timestamp is not None and timestamp.uses.now, origin)
        builder = PackBuilder(
            slots,
            groups,
            WINDOW_KEY_ID if window.keyed else key_id,
            aggregation,
            aggregates_after,
            only_max_times=window.strategy == "panes" and not window.sorts_by_time,
        )
        self._builder = builder
        times = EventTimeCache()
        self._evaluators = make_message_evaluators(timestamp, key, mappings.filter, times, groups)
        self._columns: ColumnEvaluator | None = None
        column_plan = plan_columns(mappings, aggregation, window)
        if columns != "never" and isinstance(column_plan, ColumnPlan) and column_plan.paths:
            pre_aggregator = builder.pre_aggregator
            accumulators = None if pre_aggregator is None else pre_aggregator.accumulators
            self._columns = ColumnEvaluator(column_plan, times, groups, accumulators, columns)
        self._shards = shards
        self._batch_time: int | None = None
        self._window = window
        self._key = key
        self._filter = mappings.filter
        is_now = timestamp is not None and is_now_mapping(timestamp)
        self._timestamp = None if is_now else timestamp
        self._groups = groups
        self._slots = slots
        self._drops = DroppedMessages(keep_dropped)
        has_marks = mappings.gap is not None or mappings.has_conditions
        self._marks = MessageMarks(mappings, self._drops) if has_marks else None

    @property
    def reads_columns(self) -> bool:
        """Whether lines are read as columns, as far as one can see."""
        return self._columns is not None and self._columns.is_worthwhile

    def add_raws(
        self,
        raws: list[bytes] | LineRange,
        meta: Mapping[str, Any],
        arrival_start: int,
        batch_time: int,
        ex: Execution,
    ) -> None:
        """Take messages that share their metadata, and of which each is a batch of its own.

        Args:
            raws: payloads, in order of arrival.
            meta: the metadata of all of them.
            arrival_start: the arrival number of the first; the others follow.
            batch_time: the micro-batch's time, ns, which is what `ex.now()` gives.
            ex: for the mappings and for warnings.
        """
        self._set_batch_time(batch_time)
        encoded = encode_meta(meta)
        columns = self._columns
        if columns is not None and columns.is_worthwhile and isinstance(raws, list):
            raws = (len(raws) >= columns.min_lines and LineRange.of_lines(raws)) or raws
        for start in range(0, len(raws), _CHUNK_MESSAGES):
            chunk = raws[start : start + _CHUNK_MESSAGES]
            self._add_chunk(chunk, meta, encoded, arrival_start + start, ex)

    def add_messages(
        self, messages: list[Message], arrival_start: int, batch_time: int, ex: Execution
    ) -> None:
        """Take messages of any kind; those that are marked as failed will pass by the windows.

        Args:
            messages: one batch, which is what the mappings see.
            arrival_start: the arrival number of the first; the others follow.
            batch_time: the micro-batch's time, ns, which is what `ex.now()` gives.
            ex: for the mappings and for warnings.
        """
        self._set_batch_time(batch_time)
        if len(messages) > 1:
            for start in range(0, len(messages), _CHUNK_MESSAGES):
                chunk = messages[start : start + _CHUNK_MESSAGES]
                self._add_message_chunk(chunk, messages, start, arrival_start, ex)
            return
        for index, message in enumerate(messages):
            self._add_message(messages, index, message, arrival_start + index, ex)

    def take_rows(self) -> list[ShuffleRow]:
        """Take the rows that are finished already, so that they need not be held any longer."""
        return self._builder.take_rows()

    def flush_rows(self) -> Iterator[ShuffleRow]:
        """Return all rows that are left, the counters, and how far the clock has moved."""
        self._builder.flush()
        yield from self.take_rows()
        yield from self._drops.flush_rows()
        yield from self._slots.clock_rows(self._shards)

    def _set_batch_time(self, batch_time: int) -> None:
        if self._batch_time is not None and self._batch_time != batch_time:
            raise StreamerError(
                f"a packer was given messages of two micro-batches, at {self._batch_time} and "
                f"{batch_time} ns: this is a bug in the program"
            )
        self._batch_time = batch_time
        self._slots.batch_time = batch_time

    def _flush_if_full(self, size: int) -> None:
        """Make rows of what is held if so many more bytes would be too many."""
        self._builder.flush_if_full(size, self._shards)

    def _add_chunk(
        self,
        raws: list[bytes] | LineRange,
        meta: Mapping[str, Any],
        encoded: bytes,
        start: int,
        ex: Execution,
    ) -> None:
        lengths = raws.lengths if isinstance(raws, LineRange) else lengths_of(raws)
        self._flush_if_full(int(lengths.sum()))
        if isinstance(raws, LineRange):
            if self._columns is not None and (runs := self._columns.evaluate(raws)) is not None:
                for run in runs:
                    self._add_run(raws[run.first : run.last], run, meta, encoded, start, ex)
                return
            raws = raws.to_list()
        self._add_parsed(raws, lengths, meta, encoded, start, ex)

    def _add_run(
        self,
        lines: LineRange,
        run: EvaluatedRun,
        meta: Mapping[str, Any],
        encoded: bytes,
        start: int,
        ex: Execution,
    ) -> None:
        """Add lines of a chunk that begins with the arrival number `start`."""
        if run.messages is None:
            raws = lines.to_list()
            self._add_parsed(raws, lines.lengths, meta, encoded, start + run.first, ex)
            return
        evaluated = EvaluatedChunk(run.messages, run.columns)
        arrivals = np.arange(start + run.first, start + run.last)
        self._add_evaluated(
            *(lines, lines.lengths, evaluated, arrivals, [encoded]),
            lambda i: Message(lines[i], meta),
            ex,
        )

    def _add_parsed(
        self,
        raws: list[bytes],
        lengths: Ints,
        meta: Mapping[str, Any],
        encoded: bytes,
        start: int,
        ex: Execution,
    ) -> None:
        for evaluator in self._evaluators:
            try:
                evaluated = evaluate_raws(evaluator, raws, self._builder.pre_aggregator)
            except Exception:  # whatever one message did: it is found below, and its reason told
                continue
            arrivals = np.arange(start, start + len(raws))
            self._add_evaluated(
                raws, lengths, evaluated, arrivals, [encoded], lambda i: Message(raws[i], meta), ex
            )
            return
        if self._evaluators and len(raws) > _MIN_CHUNK_MESSAGES:
            step = -(-len(raws) // 8)
            for i in range(0, len(raws), step):
                self._add_chunk(raws[i : i + step], meta, encoded, start + i, ex)
            return
        for i, raw in enumerate(raws):
            message = Message(raw, meta)
            self._add_message([message], 0, message, start + i, ex)

    def _add_message_chunk(
        self, chunk: list[Message], batch: Batch, start: int, arrival_start: int, ex: Execution
    ) -> None:
        if self._try_add_chunk(chunk, arrival_start + start, ex):
            return
        if self._evaluators and len(chunk) > _MIN_CHUNK_MESSAGES:
            for i in range(0, len(chunk), _MIN_CHUNK_MESSAGES):
                self._add_message_chunk(
                    chunk[i : i + _MIN_CHUNK_MESSAGES], batch, start + i, arrival_start, ex
                )
            return
        for i, message in enumerate(chunk, start):
            self._add_message(batch, i, message, arrival_start + i, ex)

    def _try_add_chunk(self, chunk: list[Message], first: int, ex: Execution) -> bool:
        """Take messages if they can be looked at together."""
        if any(message.error is not None for message in chunk):
            return False
        for evaluator in self._evaluators:
            try:
                raws = payloads_of(chunk)
                lengths = lengths_of(raws)
                self._flush_if_full(int(lengths.sum()))
                evaluated = evaluate_messages(
                    *(evaluator, raws, chunk), self._builder.pre_aggregator
                )
                metas = [encode_meta(message.meta) for message in chunk]
            except Exception:  # it is met again, and told, message by message
                continue
            arrivals = np.arange(first, first + len(chunk))
            self._add_evaluated(raws, lengths, evaluated, arrivals, metas, chunk.__getitem__, ex)
            return True
        return False

    def _add_evaluated(
        self,
        raws: Sequence[bytes],
        lengths: Ints,
        evaluated: EvaluatedChunk,
        arrivals: Ints,
        metas: list[bytes],
        message_at: _MessageGetter,
        ex: Execution,
    ) -> None:
        """Pack the good ones of a chunk's messages, and drop the others.

        Args:
            raws: payloads.
            lengths: by message, of its payload.
            evaluated: the results of the mappings.
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            message_at: gives a message, for those that are dropped.
            ex: for warnings.
        """
        results, columns = evaluated
        count = len(raws)
        times = (
            np.asarray(results.times, np.int64)
            if len(results.times)
            else np.full(count, self._default_time())
        )
        groups = (
            np.asarray(results.groups, np.int64)
            if len(results.groups)
            else np.zeros(count, np.int64)
        )
        if results.other_spellings:
            metas = [
                add_key_spelling(meta, results.other_spellings[index])
                if index in results.other_spellings
                else meta
                for index, meta in enumerate(metas if len(metas) > 1 else metas * count)
            ]
        good = self._drop_invalid(results, times, groups, arrivals, message_at, ex)
        if self._marks is not None:
            metas, good = self._marks.mark_all(metas, good, arrivals, message_at, ex)
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
            slots, event_times = self._slots.assign(times)
            self._builder.add(raws, lengths, slots + groups, arrivals, metas, columns, event_times)

    def _drop_invalid(
        self,
        evaluated: EvaluatedMessages,
        times: Ints,
        groups: Ints,
        arrivals: Ints,
        message_at: _MessageGetter,
        ex: Execution,
    ) -> NDArray[np.bool_] | None:
        """Drop messages, each for the first reason that there is; return which are left."""
        good: NDArray[np.bool_] | None = None
        if evaluated.kept and not all(evaluated.kept):
            good = np.array(evaluated.kept, np.bool_)
            self._drops.count_filtered(int((~good).sum()))
        if evaluated.reasons:
            bad = times == NO_EVENT_TIME
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

    def _default_time(self) -> int:
        return 0 if self._window.count_based else self._slots.batch_time

    def _latest_allowed_time(self) -> int | None:
        ahead = self._window.max_ahead
        if ahead is None or self._window.count_based:
            return None
        return self._slots.batch_time + ahead

    def _drop_future(self, time: int, message: Message, arrival: int, ex: Execution) -> None:
        self._drops.add_dropped("future", _FUTURE_TEXT, format_rfc3339(time), message, arrival, ex)

    def _drop_keyless(self, why: str, message: Message, arrival: int, ex: Execution) -> None:
        self._drops.add_dropped("key", _NO_KEY_TEXT, why, message, arrival, ex)

    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        """Pack one message of a batch, or drop it."""
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
        meta = encode_meta(message.meta)
        if self._marks is not None:
            marked = self._marks.mark(meta, batch, index, arrival, ex)
            if marked is None:
                return
            meta = marked
        slots, event_times = self._slots.assign(np.array([time], np.int64))
        if self._groups is not None and self._groups.other_spellings:
            meta = add_key_spelling(meta, self._groups.other_spellings.pop())
        self._builder.add_one(message, int(slots[0]) + group, arrival, meta, event_times)

    def _passes_filter(self, batch: Batch, index: int, ex: Execution) -> bool:
        if self._filter is None:
            return True
        try:
            result = self._filter.query(batch, index, ex)
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
        if self._timestamp is None:
            return self._default_time()
        try:
            return parse_event_time(self._timestamp.query(batch, index, ex))
        except Exception as e:  # the message alone is dropped, whatever its mapping ran into
            self._drops.add_dropped(
                "timestamp", _NO_TIME_TEXT, str(e) or repr(e), message, arrival, ex
            )
            return None

    def _group_of(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> int | None:
        """Return the group of a message's key; None when it was dropped since it has none."""
        key, groups = self._key, self._groups
        if groups is None or key is None:
            return 0
        groups.other_spellings.clear()
        try:
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
