"""What keeps which part of a mapping up to date: over columns of messages, and one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple

from streamer.bloblang.analysis.aggregates import Aggregate, AggregateKind
from streamer.bloblang.message_expression import ElementQuery
from streamer.window.aggregate.accumulator import Accumulator
from streamer.window.aggregate.any_all import AnyAllAggregate
from streamer.window.aggregate.count import CountAggregate
from streamer.window.aggregate.count_by import CountByAggregate
from streamer.window.aggregate.distinct import DistinctAggregate
from streamer.window.aggregate.filtered import FilteredAggregate
from streamer.window.aggregate.first_last import FirstLastAggregate
from streamer.window.aggregate.per_message.any_all import AnyAllAccumulator
from streamer.window.aggregate.per_message.count_by import CountByAccumulator
from streamer.window.aggregate.per_message.distinct import DistinctAccumulator
from streamer.window.aggregate.per_message.filtered import FilteredAccumulator
from streamer.window.aggregate.per_message.first_last import CountAccumulator, FirstLastAccumulator
from streamer.window.aggregate.per_message.message_accumulator import MessageAccumulator
from streamer.window.aggregate.per_message.sum_min_max import ExtremeAccumulator, SumAccumulator
from streamer.window.aggregate.per_message.top_k import TopKAccumulator
from streamer.window.aggregate.sum_min_max import SumMinMaxAggregate
from streamer.window.aggregate.top_k import TopKAggregate


class AccumulatorPair(NamedTuple):
    """What keeps a part up to date: of many groups at once, and message by message in one."""

    columns: Accumulator
    per_message: MessageAccumulator


def _make_extreme(kind: Literal["min", "max"], part: Aggregate) -> AccumulatorPair:
    return AccumulatorPair(
        SumMinMaxAggregate(kind, part.origin), ExtremeAccumulator(kind, part.origin)
    )


def _make_distinct(ordered: bool, part: Aggregate) -> AccumulatorPair:
    return AccumulatorPair(
        DistinctAggregate(ordered, part.origin), DistinctAccumulator(ordered, part.origin)
    )


def _make_first_last(last: bool, part: Aggregate) -> AccumulatorPair:
    return AccumulatorPair(FirstLastAggregate(last), FirstLastAccumulator(last))


def _make_any_all(decides: bool, part: Aggregate) -> AccumulatorPair:
    assert isinstance(part.query, ElementQuery)
    args = decides, part.origin, part.query
    return AccumulatorPair(AnyAllAggregate(*args), AnyAllAccumulator(*args))


def _make_count_by(part: Aggregate) -> AccumulatorPair:
    return AccumulatorPair(
        CountByAggregate(part.origin, part.query), CountByAccumulator(part.origin, part.query)
    )


def _make_top_k(distinct: bool, part: Aggregate) -> AccumulatorPair:
    args = part.number, part.origin, None if distinct else part.query, distinct
    return AccumulatorPair(TopKAggregate(*args), TopKAccumulator(*args))


ACCUMULATORS: Final[dict[AggregateKind, Callable[[Aggregate], AccumulatorPair]]] = {
    "count": lambda part: AccumulatorPair(CountAggregate(), CountAccumulator()),
    "sum": lambda part: AccumulatorPair(SumMinMaxAggregate("sum", part.origin), SumAccumulator()),
    "min": partial(_make_extreme, "min"),
    "max": partial(_make_extreme, "max"),
    "distinct": partial(_make_distinct, False),
    "unique": partial(_make_distinct, True),
    "first": partial(_make_first_last, False),
    "last": partial(_make_first_last, True),
    "latest": partial(_make_first_last, True),
    "any": partial(_make_any_all, True),
    "all": partial(_make_any_all, False),
    "counts": _make_count_by,
    "top": partial(_make_top_k, False),
    "top distinct": partial(_make_top_k, True),
}


def make_accumulator(part: Aggregate) -> Accumulator:
    """Return what keeps a part up to date in many groups at once."""
    inner = ACCUMULATORS[part.kind](part).columns
    return FilteredAggregate(part, inner) if _is_filtered(part) else inner


def make_message_accumulator(part: Aggregate) -> MessageAccumulator:
    """Return what keeps a part up to date message by message."""
    inner = ACCUMULATORS[part.kind](part).per_message
    return FilteredAccumulator(part, inner) if _is_filtered(part) else inner


def _is_filtered(part: Aggregate) -> bool:
    """Say whether some messages may bring nothing: what is asked of them is an expression."""
    return part.expression is not None and part.kind != "latest"
