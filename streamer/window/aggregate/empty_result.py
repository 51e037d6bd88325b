"""The value of an aggregate in a group without values: what its method gives for no values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.bloblang.analysis.aggregates import Aggregate
from streamer.bloblang.errors import QueryError, UnplacedError
from streamer.bloblang.methods import aggregates, arrays, numbers, objects, statistics

_METHODS: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "count": objects.length,
    "distinct": objects.length,
    "sum": arrays.sum_,
    "min": numbers.min_,
    "max": numbers.max_,
    "unique": lambda array: arrays.unique(array, None),
    "first": lambda array: arrays.index(array, 0),
    "last": lambda array: arrays.index(array, -1),
    "any": lambda array: False,
    "all": lambda array: False,
    "counts": lambda array: aggregates.count_by(array, None),
    "top": lambda array: aggregates.top_k(array, 1, None),
    "top distinct": lambda array: aggregates.top_k(array, 1, None),
    "avg": statistics.avg,
    "stddev_pop": statistics.stddev_pop,
    "stddev_samp": statistics.stddev_samp,
    # Their methods are given the array.
    "values": list,
    "histogram": list,
    "approximate distinct": statistics.approx_count_distinct,
    "min_by": lambda array: aggregates.min_by(array, _refuse_element),
    "max_by": lambda array: aggregates.max_by(array, _refuse_element),
    "first values": list,
    "last values": list,
}


def _refuse_element(element: Any) -> Any:
    raise AssertionError("there is no element")


def empty_result(part: Aggregate) -> Any:
    """Return what an aggregate's method gives for an empty array.

    Raises:
        UnplacedError: it fails.
    """
    try:
        return _METHODS[part.kind]([])
    except QueryError as e:
        raise UnplacedError(f"{part.origin}: {e}") from None
