"""The mappings of a buffer, evaluated for the messages of a chunk by a way to evaluate them."""

from __future__ import annotations

from typing import Any, NamedTuple

from streamer.core.message import Message
from streamer.window.aggregate.accumulator import ValueColumn
from streamer.window.aggregate.pre_aggregator import PreAggregator
from streamer.window.evaluate.message_slots import EvaluatedMessages, MessageEvaluator


class EvaluatedChunk(NamedTuple):
    """The results of a chunk's mappings.

    Attributes:
        messages: event times, groups and the filter's results.
        columns: values for pre-aggregation, by aggregate; None without.
    """

    messages: EvaluatedMessages
    columns: list[ValueColumn] | None


def evaluate_raws(
    evaluator: MessageEvaluator, raws: list[bytes], pre_aggregator: PreAggregator | None
) -> EvaluatedChunk:
    """Evaluate payloads; raises whatever one of them makes a mapping raise."""
    evaluator.reset()
    if pre_aggregator is not None:
        _, columns = pre_aggregator.evaluate(evaluator, raws)
        return EvaluatedChunk(evaluator.evaluated, columns)
    evaluator.evaluate(raws if evaluator.parser is None else list(map(evaluator.parser, raws)))
    return EvaluatedChunk(evaluator.evaluated, None)


def evaluate_messages(
    evaluator: MessageEvaluator,
    raws: list[bytes],
    messages: list[Message],
    pre_aggregator: PreAggregator | None,
) -> EvaluatedChunk:
    """Evaluate messages, whose payloads are at hand; raises as `evaluate_raws`."""
    evaluator.reset()
    bare = evaluator.parser is None and pre_aggregator is None
    docs: list[Any] = raws if bare else [message.doc for message in messages]
    evaluator.evaluate(docs)
    columns = None if pre_aggregator is None else pre_aggregator.make_columns(docs)
    return EvaluatedChunk(evaluator.evaluated, columns)
