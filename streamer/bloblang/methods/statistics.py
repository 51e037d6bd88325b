"""Statistics of an array: our own methods, by the names that SQL has for them.

None depends on the order of the array, and each can be kept up to date in parts; so windows need
not keep their messages for them (`analysis.pre_aggregation`).
"""

from __future__ import annotations

from typing import Any

from streamer.bloblang.declare import STREAMER, Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch
from streamer.bloblang.golib.convert import array_of
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.bloblang.runtime import cardinality
from streamer.bloblang.runtime.moments import mean_of, moments_of
from streamer.bloblang.runtime.quantiles import (
    BucketCounts,
    SortedNumbers,
    count_buckets,
    sort_numbers,
)

_CATEGORY = "Object & Array Manipulation"


def _check_fraction(fraction: float | None) -> None:
    if fraction is not None and not 0 <= fraction <= 1:
        raise ArgumentError(f"fraction must be from 0 to 1, got {fraction:g}")


def _numbers_of(value: Any) -> list[float]:
    """Return an array's numbers as floats; there must be one, and nothing else."""
    if type(value) is not list:
        raise TypeMismatch(value, "array")
    if not value:
        raise QueryError("the array was empty")
    for i, item in enumerate(value):
        if type(item) not in NUMBER_TYPES:
            raise QueryError(f"index {i} of array: {TypeMismatch(item, 'number')}")
    return list(map(float, value))


def _sorted_of(value: Any) -> SortedNumbers:
    # A window that aggregates has them in order.
    return value if type(value) is SortedNumbers else sort_numbers(_numbers_of(value))


@declare(
    "avg",
    _CATEGORY,
    examples=(
        Example("root.mean = this.latencies.avg()", '{"latencies":[12,31,17]}', '{"mean":20}'),
    ),
    origin=STREAMER,
)
def avg(value: Any) -> float:
    """The mean of an array's numbers: their exact sum divided by their count."""
    return mean_of(_numbers_of(value))


@declare(
    "stddev_pop",
    _CATEGORY,
    examples=(
        Example(
            "root.deviation = this.latencies.stddev_pop()",
            '{"latencies":[2,4,4,4,5,5,7,9]}',
            '{"deviation":2}',
        ),
    ),
    origin=STREAMER,
)
def stddev_pop(value: Any) -> float:
    """The standard deviation of an array's numbers, of a population."""
    return moments_of(_numbers_of(value), squared=True).deviation(sample=False)


@declare(
    "stddev_samp",
    _CATEGORY,
    examples=(
        Example("root = this.stddev_samp()", "[1,2,3,4,5]", "1.5811388300841898"),
        Example("root = this.stddev_samp()", "[7]", "null"),
    ),
    origin=STREAMER,
)
def stddev_samp(value: Any) -> float | None:
    """The standard deviation of an array's numbers, of a sample; null for one number."""
    numbers = _numbers_of(value)
    return moments_of(numbers, squared=True).deviation(sample=True) if len(numbers) > 1 else None


@declare(
    "median",
    _CATEGORY,
    examples=(
        Example(
            "root.median = this.latencies.median()", '{"latencies":[12,250,17,31]}', '{"median":24}'
        ),
    ),
    origin=STREAMER,
)
def median(value: Any) -> float:
    """The number in the middle of an array's numbers, or the mean of the two: `percentile(0.5)`."""
    return _sorted_of(value).interpolate(0.5)


@declare(
    "percentile",
    _CATEGORY,
    Param("fraction", "float"),
    examples=(
        Example(
            "root.p95 = this.latencies.percentile(0.95)",
            '{"latencies":[12,31,17,250]}',
            '{"p95":217.15}',
        ),
        Example(
            "root.fastest = this.latencies.percentile(0)",
            '{"latencies":[12,31,17,250]}',
            '{"fastest":12}',
        ),
    ),
    check=_check_fraction,
    origin=STREAMER,
)
def percentile(value: Any, fraction: float) -> float:
    """The number below which a fraction of an array's numbers lies, on the line between two.

    It is SQL's PERCENTILE_CONT: with the n numbers in order, place fraction * (n - 1) from 0.
    """
    _check_fraction(fraction)
    return _sorted_of(value).interpolate(fraction)


@declare(
    "percentile_disc",
    _CATEGORY,
    Param("fraction", "float"),
    examples=(
        Example(
            "root.p70 = this.latencies.percentile_disc(0.7)",
            '{"latencies":[10,20,30,50]}',
            '{"p70":30}',
        ),
    ),
    check=_check_fraction,
    origin=STREAMER,
)
def percentile_disc(value: Any, fraction: float) -> float:
    """The first of an array's numbers, in order, up to which there is a fraction of all of them.

    It is SQL's PERCENTILE_DISC: always one of the numbers.
    """
    _check_fraction(fraction)
    return _sorted_of(value).choose(fraction)


@declare(
    "percentile_approx",
    _CATEGORY,
    Param("fraction", "float"),
    examples=(
        Example(
            "root.p70 = this.latencies.percentile_approx(0.7)",
            '{"latencies":[10,20,30,50]}',
            '{"p70":30}',
        ),
        Example(
            "root.slowest = this.latencies.percentile_approx(1)",
            '{"latencies":[10,20,1001]}',
            '{"slowest":1000}',
        ),
    ),
    check=_check_fraction,
    origin=STREAMER,
)
def percentile_approx(value: Any, fraction: float) -> float:
    """The result of `percentile_disc`, or one up to 0.8 % nearer to 0; a window keeps counters.

    Whole numbers up to 256 are exact. A window keeps a histogram and not the numbers.
    """
    _check_fraction(fraction)
    histogram = value if type(value) is BucketCounts else count_buckets(_numbers_of(value))
    return histogram.choose(fraction)


@declare(
    "approx_count_distinct",
    _CATEGORY,
    examples=(Example("root = this.approx_count_distinct()", '["a","b","a"]', "2"),),
    origin=STREAMER,
)
def approx_count_distinct(value: Any) -> int:
    """The approximate number of different texts and numbers; its standard error is 1.6 %.

    It is HyperLogLog: a window keeps 4 KB of an array of any size.
    """
    ranks: dict[int, int] = {}
    for i, item in enumerate(array_of(value)):
        try:
            register, rank = cardinality.find_register(cardinality.hash_value(item))
        except TypeMismatch as e:
            raise QueryError(f"index {i}: {e}") from None
        ranks[register] = max(rank, ranks.get(register, 0))
    return cardinality.estimate_distinct(ranks.values())
