"""Methods that make little of an array: our own, for what other systems aggregate windows with.

What they give does not depend on where in the array equal elements stand, but for those that
`top_k`, `min_by` and `max_by` find equal; so windows can keep it up to date
(`analysis.pre_aggregation`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamer.bloblang.declare import STREAMER, Example, Param, declare
from streamer.bloblang.errors import ArgumentError, PrefixedError, QueryError, TypeMismatch
from streamer.bloblang.golib.convert import array_of, text_of
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.bloblang.golib.text import to_text
from streamer.core.value import Number

_CATEGORY = "Object & Array Manipulation"
MIXED_TYPES_ERROR = "the elements must be all numbers or all strings, got both"
Query = Callable[[Any], Any]


def check_count(count: int | None, query: None = None) -> None:
    """Refuse a number of elements that is none."""
    if count is not None and count < 1:
        raise ArgumentError(f"count must be at least 1, got {count}")


def _evaluate_each(array: list[Any], query: Query | None, of: Callable[[Any], Any]) -> list[Any]:
    """Return what is made of each element, or of what a query gives for it."""
    results = []
    for i, item in enumerate(array):
        try:
            result = item if query is None else query(item)
        except Exception as e:
            raise PrefixedError(f"index {i}: ", e) from None
        try:
            results.append(of(result))
        except TypeMismatch as e:
            raise QueryError(f"index {i}: {e}") from None
    return results


def format_key(value: Any) -> str:
    """Return the key under which a value is counted.

    Raises:
        TypeMismatch: it is neither text, number nor boolean; a time is its text.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is bool:
        return "true" if value else "false"
    if kind in NUMBER_TYPES:
        return to_text(value if kind is int else float(value))
    return text_of(value, "string", "number", "bool")


def sort_key(value: Any) -> Any:
    """Return what a value is ordered by.

    Raises:
        TypeMismatch: it is neither text nor number; a time is its text.
    """
    if type(value) in NUMBER_TYPES:
        return float(value) if type(value) is Number else value
    if type(value) is str:
        return value
    return text_of(value, "string", "number")


def find_largest(ranks: Sequence[Any], count: int) -> list[int]:
    """Return the places of the largest, in descending order; of equal ones, the earlier first.

    Args:
        ranks: all numbers or all texts. What is not a number (NaN) is less than all that are.
        count: how many at most.
    """
    order = list(range(len(ranks)))
    if any(each != each for each in ranks):
        order.sort(key=lambda at: (ranks[at] == ranks[at], ranks[at]), reverse=True)
    else:
        order.sort(key=ranks.__getitem__, reverse=True)
    return order[:count]


@declare(
    "count_by",
    _CATEGORY,
    Param("query", "query", default=None),
    examples=(
        Example("root.words = this.count_by()", '["a","b","a"]', '{"words":{"a":2,"b":1}}'),
        Example(
            "root.orders_per_city = this.count_by(o -> o.city)",
            '[{"city":"Lyon"},{"city":"Bonn"},{"city":"Lyon"}]',
            '{"orders_per_city":{"Bonn":1,"Lyon":2}}',
        ),
        Example(
            "root.top = this.count_by().key_values().top_k(1, e -> e.value).index(0)",
            '["a","b","a"]',
            '{"top":{"key":"a","value":2}}',
        ),
    ),
    origin=STREAMER,
)
def count_by(value: Any, query: Query | None) -> dict[str, int]:
    """The number of times that each value, or the result of a query for it, occurs, by its text."""
    counts: dict[str, int] = {}
    for key in _evaluate_each(array_of(value), query, format_key):
        counts[key] = counts.get(key, 0) + 1
    return dict(sorted(counts.items()))


@declare(
    "top_k",
    _CATEGORY,
    Param("count", "integer"),
    Param("query", "query", default=None),
    examples=(
        Example("root.largest = this.totals.top_k(2)", '{"totals":[3,8,4,8]}', '{"largest":[8,8]}'),
        Example(
            "root.largest = this.totals.unique().top_k(2)",
            '{"totals":[3,8,4,8]}',
            '{"largest":[8,4]}',
        ),
        Example(
            "root.best = this.players.top_k(1, p -> p.points)",
            '{"players":[{"name":"Ada","points":5},{"name":"Bob","points":9}]}',
            '{"best":[{"name":"Bob","points":9}]}',
        ),
        Example(
            "root.smallest = this.totals.top_k(2, n -> 0 - n)",
            '{"totals":[3,8,4]}',
            '{"smallest":[3,4]}',
        ),
    ),
    check=check_count,
    origin=STREAMER,
)
def top_k(value: Any, count: int, query: Query | None) -> list[Any]:
    """The largest elements, or those with the greatest results of a query, in descending order."""
    check_count(count)
    array = array_of(value)
    ranks = _evaluate_each(array, query, sort_key)
    if len({type(each) is str for each in ranks}) > 1:
        raise QueryError(MIXED_TYPES_ERROR)
    return [array[at] for at in find_largest(ranks, count)]


def find_extreme(ranks: Sequence[Any], greatest: bool) -> int:
    """Return the place of the first of the least ranks, or of the last of the greatest.

    So they are the first and the last of a stable order.

    Args:
        ranks: all numbers or all texts, one at least. What is not a number (NaN) is passed over
            while there is any that is.
        greatest: return that of the greatest.
    """
    numbers = [at for at, rank in enumerate(ranks) if rank == rank] or list(range(len(ranks)))
    if greatest:
        numbers.reverse()
    return (max if greatest else min)(numbers, key=ranks.__getitem__)


def _choose_by(value: Any, query: Query, greatest: bool) -> Any:
    array = array_of(value)
    if not array:
        raise QueryError("the array was empty")
    ranks = _evaluate_each(array, query, sort_key)
    if len({type(each) is str for each in ranks}) > 1:
        raise QueryError(MIXED_TYPES_ERROR)
    return array[find_extreme(ranks, greatest)]


@declare(
    "max_by",
    _CATEGORY,
    Param("query", "query"),
    examples=(
        Example(
            "root.largest = this.orders.max_by(o -> o.total).id",
            '{"orders":[{"id":1,"total":5},{"id":2,"total":9}]}',
            '{"largest":2}',
        ),
    ),
    origin=STREAMER,
)
def max_by(value: Any, query: Query) -> Any:
    """The element with the greatest result of a query; of several, the last one of the array."""
    return _choose_by(value, query, greatest=True)


@declare(
    "min_by",
    _CATEGORY,
    Param("query", "query"),
    examples=(
        Example(
            "root.first = this.events.min_by(e -> e.at).page",
            '{"events":[{"page":"cart","at":7},{"page":"start","at":2}]}',
            '{"first":"start"}',
        ),
    ),
    origin=STREAMER,
)
def min_by(value: Any, query: Query) -> Any:
    """The element with the least result of a query; of several, the first one of the array."""
    return _choose_by(value, query, greatest=False)
