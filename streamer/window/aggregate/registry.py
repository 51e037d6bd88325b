"""The accumulator of each kind of aggregate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streamer.bloblang.analysis.aggregates import Aggregate, AggregateKind
from streamer.bloblang.message_expression import ElementQuery
from streamer.window.aggregate.accumulator import Accumulator
from streamer.window.aggregate.any_all import AnyAllAccumulator
from streamer.window.aggregate.approximate_distinct import ApproximateDistinctAccumulator
from streamer.window.aggregate.bucket_counts import BucketCountAccumulator
from streamer.window.aggregate.count import CountAccumulator
from streamer.window.aggregate.count_by import CountByAccumulator
from streamer.window.aggregate.distinct import DistinctAccumulator
from streamer.window.aggregate.extreme_by import ExtremeByAccumulator
from streamer.window.aggregate.filtered import FilteredAccumulator
from streamer.window.aggregate.first_last import FirstLastAccumulator
from streamer.window.aggregate.first_values import FirstValuesAccumulator
from streamer.window.aggregate.moments import MomentsAccumulator
from streamer.window.aggregate.sorted_numbers import SortedNumbersAccumulator
from streamer.window.aggregate.sum_min_max import ExtremeAccumulator, SumAccumulator
from streamer.window.aggregate.top_k import TopKAccumulator


def _make_any_all(decides: bool, part: Aggregate) -> Accumulator:
    assert isinstance(part.query, ElementQuery)
    return AnyAllAccumulator(decides, part.origin, part.query)


ACCUMULATORS: Final[dict[AggregateKind, Callable[[Aggregate], Accumulator]]] = {
    "count": lambda part: CountAccumulator(),
    "sum": lambda part: SumAccumulator(),
    "min": lambda part: ExtremeAccumulator("min", part.origin),
    "max": lambda part: ExtremeAccumulator("max", part.origin),
    "distinct": lambda part: DistinctAccumulator(False, part.origin),
    "unique": lambda part: DistinctAccumulator(True, part.origin),
    "first": lambda part: FirstLastAccumulator(last=False),
    "last": lambda part: FirstLastAccumulator(last=True),
    "latest": lambda part: FirstLastAccumulator(last=True),
    "any": lambda part: _make_any_all(True, part),
    "all": lambda part: _make_any_all(False, part),
    "counts": lambda part: CountByAccumulator(part.origin, part.query),
    "top": lambda part: TopKAccumulator(part.number, part.origin, part.query),
    "top distinct": lambda part: TopKAccumulator(part.number, part.origin, None, distinct=True),
    "avg": lambda part: MomentsAccumulator("avg", part.origin),
    "stddev_pop": lambda part: MomentsAccumulator("stddev_pop", part.origin),
    "stddev_samp": lambda part: MomentsAccumulator("stddev_samp", part.origin),
    "values": lambda part: SortedNumbersAccumulator(part.origin),
    "histogram": lambda part: BucketCountAccumulator(part.origin),
    "approximate distinct": lambda part: ApproximateDistinctAccumulator(part.origin),
    "min_by": lambda part: ExtremeByAccumulator(False, part.origin, part.query),
    "max_by": lambda part: ExtremeByAccumulator(True, part.origin, part.query),
    "first values": lambda part: FirstValuesAccumulator(part.number, last=False),
    "last values": lambda part: FirstValuesAccumulator(part.number, last=True),
}


def make_accumulator(part: Aggregate) -> Accumulator:
    """Return an aggregate's accumulator; wrapped where steps of its expression may drop values."""
    inner = ACCUMULATORS[part.kind](part)
    filtered = part.expression is not None and part.kind != "latest"
    return FilteredAccumulator(part, inner) if filtered else inner
