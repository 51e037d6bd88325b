"""Messages by the chunk: thousands are looked at together, and fewer around one that fails.

What is told of a chunk at once must be what would be told of each message alone: so a chunk with a
message that makes a mapping fail is taken again in smaller ones, and the few around it one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.json.bulk import payloads_of
from streamer.core.message import Batch, Message
from streamer.window.aggregate.accumulator import ValueColumn
from streamer.window.assign.pack_builder import PackBuilder
from streamer.window.contract.shuffle_row import ShuffleRow
from streamer.window.evaluate.message_evaluator import EvaluatedMessages, MessageEvaluator
from streamer.window.pack.metadata_codec import encode_meta
from streamer.window.pack.pack_codec import lengths_of
from streamer.window.settings.int_codec import Ints

CHUNK_MESSAGES: Final = 4096
_MIN_CHUNK_MESSAGES: Final = 64

MessageGetter = Callable[[int], Message]
"""Gives a message of a chunk, by its place."""


class EvaluatedChunk(NamedTuple):
    """The results of a chunk's mappings.

    Attributes:
        messages: event times, groups and the filter's results.
        columns: values for pre-aggregation, by aggregate; None without.
    """

    messages: EvaluatedMessages
    columns: list[ValueColumn] | None


class BatchPacker(ABC):
    """Takes the messages of one task, of one micro-batch."""

    def __init__(
        self, builder: PackBuilder, evaluators: Sequence[MessageEvaluator], shards: int
    ) -> None:
        """Begin.

        Args:
            builder: makes rows of messages.
            evaluators: ways to evaluate many messages at once, the fastest first; may be none.
            shards: how many shards there are.
        """
        self._builder = builder
        self._evaluators = evaluators
        self._shards = shards
        self._batch_time: int | None = None

    def add_raws(
        self,
        raws: list[bytes],
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
        for start in range(0, len(raws), CHUNK_MESSAGES):
            chunk = raws[start : start + CHUNK_MESSAGES]
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
            for start in range(0, len(messages), CHUNK_MESSAGES):
                chunk = messages[start : start + CHUNK_MESSAGES]
                self._add_message_chunk(chunk, messages, start, arrival_start, ex)
            return
        for index, message in enumerate(messages):
            self._add_message(messages, index, message, arrival_start + index, ex)

    def take_rows(self) -> list[ShuffleRow]:
        """Take the rows that are finished already, so that they need not be held any longer."""
        return self._builder.take_rows()

    @abstractmethod
    def flush_rows(self) -> Iterator[ShuffleRow]:
        """Return all rows that are left, the counters, and how far the clock has moved."""

    @abstractmethod
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
        """Take messages that were looked at.

        Args:
            raws: payloads.
            lengths: by message, of its payload.
            evaluated: what was seen of them.
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            message_at: gives a message, for those that are dropped.
            ex: for warnings.
        """

    @abstractmethod
    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        """Take one message of a batch, or tell why not."""

    def _set_batch_time(self, batch_time: int) -> None:
        if self._batch_time is not None and self._batch_time != batch_time:
            raise StreamerError(
                f"a packer was given messages of two micro-batches, at {self._batch_time} and "
                f"{batch_time} ns: this is a bug in the program"
            )
        self._batch_time = batch_time

    def _flush_if_full(self, size: int) -> None:
        """Make rows of what is held if so many more bytes would be too many."""
        self._builder.flush_if_full(size, self._shards)

    def _evaluate_raws(self, evaluator: MessageEvaluator, raws: list[bytes]) -> EvaluatedChunk:
        """Evaluate payloads; raises whatever one of them makes a mapping raise."""
        evaluator.reset()
        pre_aggregator = self._builder.pre_aggregator
        if pre_aggregator is not None:
            _, columns = pre_aggregator.evaluate(evaluator, raws)
            return EvaluatedChunk(evaluator.evaluated, columns)
        evaluator.evaluate(raws if evaluator.parser is None else list(map(evaluator.parser, raws)))
        return EvaluatedChunk(evaluator.evaluated, None)

    def _evaluate_messages(
        self, evaluator: MessageEvaluator, raws: list[bytes], messages: list[Message]
    ) -> EvaluatedChunk:
        """Evaluate messages, whose payloads are at hand; raises as `_evaluate_raws`."""
        evaluator.reset()
        pre_aggregator = self._builder.pre_aggregator
        bare = evaluator.parser is None and pre_aggregator is None
        docs: list[Any] = raws if bare else [message.doc for message in messages]
        evaluator.evaluate(docs)
        columns = None if pre_aggregator is None else pre_aggregator.make_columns(docs)
        return EvaluatedChunk(evaluator.evaluated, columns)

    def _add_chunk(
        self, raws: list[bytes], meta: Mapping[str, Any], encoded: bytes, start: int, ex: Execution
    ) -> None:
        lengths = lengths_of(raws)
        self._flush_if_full(int(lengths.sum()))
        for evaluator in self._evaluators:
            try:
                evaluated = self._evaluate_raws(evaluator, raws)
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
                evaluated = self._evaluate_messages(evaluator, raws, chunk)
                metas = [encode_meta(message.meta) for message in chunk]
            except Exception:  # it is met again, and told, message by message
                continue
            arrivals = np.arange(first, first + len(chunk))
            self._add_evaluated(raws, lengths, evaluated, arrivals, metas, chunk.__getitem__, ex)
            return True
        return False
