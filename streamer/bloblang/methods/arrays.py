"""Methods on arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import (
    ArgumentError,
    PrefixedError,
    QueryError,
    TypeMismatch,
    UnplacedError,
)
from streamer.bloblang.golib.convert import array_of, text_of
from streamer.bloblang.golib.operations import NUMBER_TYPES, is_same
from streamer.bloblang.runtime.size_check import check_json_size
from streamer.core.timestamps import Timestamp

_CATEGORY = "Object & Array Manipulation"
_TEXT_TYPES = (str, bytes, Timestamp)
Query = Callable[[Any], Any]


def _test_element(test: Query, item: Any, i: int) -> bool:
    try:
        result = test(item)
    except Exception as e:
        raise PrefixedError(f"element {i}: ", e) from None
    if type(result) is not bool:
        raise QueryError(f"element {i}: {TypeMismatch(result, 'bool')}")
    return result


@declare(
    "all",
    _CATEGORY,
    Param("test", "query"),
    examples=(
        Example(
            "root.done = this.all(step -> step.done)",
            '[{"done":true},{"done":false}]',
            '{"done":false}',
        ),
    ),
)
def all_(value: Any, test: Query) -> bool:
    """True if a query is true for every element; false for an empty array."""
    array = array_of(value)
    return bool(array) and all(_test_element(test, item, i) for i, item in enumerate(array))


@declare(
    "any",
    _CATEGORY,
    Param("test", "query"),
    examples=(Example("root.hot = this.any(celsius -> celsius > 90)", "[71,93]", '{"hot":true}'),),
)
def any_(value: Any, test: Query) -> bool:
    """True if a query is true for an element."""
    return any(_test_element(test, item, i) for i, item in enumerate(array_of(value)))


@declare(
    "append",
    _CATEGORY,
    examples=(
        Example('root.tags = this.tags.append("new")', '{"tags":["eu"]}', '{"tags":["eu","new"]}'),
    ),
    variadic=True,
)
def append(value: Any, *items: Any) -> list[Any]:
    """The array with more elements at its end."""
    return [*array_of(value), *items]


@declare(
    "concat",
    _CATEGORY,
    examples=(
        Example(
            "root.all = this.day.concat(this.night)",
            '{"day":[7,8],"night":[19]}',
            '{"all":[7,8,19]}',
        ),
    ),
    variadic=True,
    binds=True,
    own_errors=True,
)
def concat(*others: Any) -> Callable[[Any], list[Any]]:
    """The array with the elements of others at its end."""
    added = [item for other in others for item in array_of(other)]
    return lambda value: [*array_of(value), *added]


@declare(
    "zip",
    _CATEGORY,
    examples=(
        Example(
            "root.pairs = this.names.zip(this.ages)",
            '{"names":["Ada","Bob"],"ages":[36,41]}',
            '{"pairs":[["Ada",36],["Bob",41]]}',
        ),
    ),
    variadic=True,
    binds=True,
    own_errors=True,
)
def zip_(*others: Any) -> Callable[[Any], list[Any]]:
    """An array of arrays: the first elements of all, the second ones, and so on."""
    for other in others:
        array_of(other)

    def run(value: Any) -> list[Any]:
        arrays = [array_of(value), *others]
        if not others:
            raise QueryError("zip requires at least one argument")
        if len({len(array) for array in arrays}) > 1:
            raise QueryError("can't zip different length array values")
        return [list(items) for items in zip(*arrays, strict=True)]

    return run


@declare(
    "enumerated",
    _CATEGORY,
    examples=(
        Example(
            "root.names = this.enumerated()",
            '["Ada","Bob"]',
            '{"names":[{"index":0,"value":"Ada"},{"index":1,"value":"Bob"}]}',
        ),
    ),
)
def enumerated(value: Any) -> list[Any]:
    """An array of objects with the index and the value of each element."""
    return [{"index": i, "value": item} for i, item in enumerate(array_of(value))]


@declare(
    "find",
    _CATEGORY,
    Param("value", "any"),
    examples=(Example('root.position = this.find("bob")', '["ada","bob"]', '{"position":1}'),),
)
def find(value: Any, target: Any) -> int:
    """The index of the first equal element; -1 when there is none."""
    return next((i for i, item in enumerate(array_of(value)) if is_same(target, item)), -1)


@declare(
    "find_all",
    _CATEGORY,
    Param("value", "any"),
    examples=(
        Example('root.days = this.find_all("rain")', '["rain","sun","rain"]', '{"days":[0,2]}'),
    ),
)
def find_all(value: Any, target: Any) -> list[int]:
    """The indexes of all equal elements."""
    return [i for i, item in enumerate(array_of(value)) if is_same(target, item)]


def _query_matches(query: Query, item: Any, i: int) -> bool:
    try:
        result = query(item)
    except Exception as e:
        raise PrefixedError(f"query returned an error for index {i}: ", e) from None
    if type(result) is not bool:
        mismatch = TypeMismatch(result, "bool")
        raise QueryError(f"query returned a non-boolean value for index {i}: {mismatch}")
    return result


@declare(
    "find_by",
    _CATEGORY,
    Param("query", "query"),
    examples=(Example("root.hot_day = this.find_by(c -> c > 30)", "[28,31,33]", '{"hot_day":1}'),),
)
def find_by(value: Any, query: Query) -> int:
    """The index of the first element for which a query is true; -1 when there is none."""
    return next((i for i, item in enumerate(array_of(value)) if _query_matches(query, item, i)), -1)


@declare(
    "find_all_by",
    _CATEGORY,
    Param("query", "query"),
    examples=(
        Example(
            "root.hot_days = this.find_all_by(c -> c > 30)", "[28,31,33]", '{"hot_days":[1,2]}'
        ),
    ),
)
def find_all_by(value: Any, query: Query) -> list[int]:
    """The indexes of all elements for which a query is true."""
    return [i for i, item in enumerate(array_of(value)) if _query_matches(query, item, i)]


@declare(
    "flatten",
    _CATEGORY,
    examples=(
        Example("root.tags = this.flatten()", '[["a","b"],["c"]]', '{"tags":["a","b","c"]}'),
    ),
)
def flatten(value: Any) -> list[Any]:
    """The array with the elements of nested arrays in their place, one level deep."""
    result: list[Any] = []
    for item in array_of(value):
        if type(item) is list:
            result.extend(item)
        else:
            result.append(item)
    return result


@declare(
    "fold",
    _CATEGORY,
    Param("initial", "any"),
    Param("query", "query"),
    examples=(
        Example(
            "root.total = this.fold(0, x -> x.tally + x.value.price)",
            '[{"price":2},{"price":5}]',
            '{"total":7}',
        ),
    ),
)
def fold(value: Any, initial: Any, query: Query) -> Any:
    """One value of all elements: a query makes the next tally of `tally` and `value`."""
    tally, check = initial, 4
    for number, item in enumerate(array_of(value)):
        tally = query({"tally": tally, "value": item})
        if number == check:  # each step may make many of what there was
            check_json_size(tally)
            check *= 2
    if check > 4:
        check_json_size(tally)
    return tally


@declare(
    "index",
    _CATEGORY,
    Param("index", "integer"),
    examples=(Example("root.last = this.index(-1)", "[20.5,21,21.5]", '{"last":21.5}'),),
)
def index(value: Any, index: int) -> Any:
    """The element at an index; a negative one counts from the end."""
    if type(value) not in (list, bytes):
        raise TypeMismatch(value, "array")
    at = index + len(value) if index < 0 else index
    if not 0 <= at < len(value):
        raise QueryError(f"index '{at}' was out of bounds for array size: {len(value)}")
    return value[at]


@declare(
    "slice",
    _CATEGORY,
    Param("low", "integer"),
    Param("high", "integer", default=None),
    examples=(
        Example(
            "root.first_two = this.top.slice(0, 2)",
            '{"top":["a","b","c"]}',
            '{"first_two":["a","b"]}',
        ),
        Example("root.year = this.at.slice(0, 4)", '{"at":"2026-11-21"}', '{"year":"2026"}'),
    ),
    binds=True,
)
def slice_(low: int, high: int | None) -> Callable[[Any], Any]:
    """The part of an array, a text (by bytes) or bytes from low up to high, without high."""
    if high is not None and high > 0 and low >= high:
        raise ArgumentError(f"lower slice bound {low} must be lower than upper ({high})")

    def run(value: Any) -> Any:
        if type(value) not in (list, str, bytes):
            raise TypeMismatch(value, "array", "string")
        raw = type(value) is str and not value.isascii()
        data = value.encode("utf-8", "surrogateescape") if raw else value
        size = len(data)
        end = size if high is None else high + size if high < 0 else high
        end = max(min(end, size), 0)
        start = max(size + low, 0) if low < 0 else low
        if start > end:
            raise QueryError(
                f"lower slice bound {start} must be lower than or equal to upper bound ({end}) "
                f"and target length ({size})"
            )
        part = data[start:end]
        return part.decode("utf-8", "surrogateescape") if raw else part

    return run


def _is_ordered_before(keys: list[Any], i: int, j: int, word: str, origin: str) -> bool:
    left, right = keys[i], keys[j]
    kind, other = type(left), type(right)
    if kind in NUMBER_TYPES and other in NUMBER_TYPES:
        return bool(left < right)
    if kind in _TEXT_TYPES and other in _TEXT_TYPES:
        return text_of(left) < text_of(right)
    if kind in NUMBER_TYPES or kind in _TEXT_TYPES:
        expected = "number" if kind in NUMBER_TYPES else "string"
        raise UnplacedError(f"{word} element {j}: {TypeMismatch(right, expected, origin=origin)}")
    mismatch = TypeMismatch(left, "number", "string", origin=origin)
    raise UnplacedError(f"{word} element {i}: {mismatch}")


def _sort_by_keys(items: list[Any], keys: list[Any], word: str, origin: str = "") -> list[Any]:
    """Sort by keys; plain numbers or plain texts at C speed, others compared one by one."""
    kinds = set(map(type, keys))
    if kinds == {Timestamp}:
        keys, kinds = list(map(str, keys)), {str}
    order = list(range(len(keys)))
    if kinds <= NUMBER_TYPES or kinds == {str}:
        order.sort(key=keys.__getitem__)
    else:

        def compare(i: int, j: int) -> int:
            if _is_ordered_before(keys, i, j, word, origin):
                return -1
            return int(_is_ordered_before(keys, j, i, word, origin))

        order.sort(key=functools.cmp_to_key(compare))
    return [items[i] for i in order]


@declare(
    "sort",
    _CATEGORY,
    Param("compare", "query", default=None),
    examples=(
        Example("root.sorted = this.sort()", "[31,28,33]", '{"sorted":[28,31,33]}'),
        Example(
            "root.sorted = this.sort(pair -> pair.left > pair.right)",
            "[31,28,33]",
            '{"sorted":[33,31,28]}',
        ),
    ),
)
def sort(value: Any, compare: Query | None) -> list[Any]:
    """The array in ascending order, or in the order of a query that compares `left` and `right`."""
    array = array_of(value)
    if compare is None:
        return _sort_by_keys(array, array, "sort")

    def order(left: Any, right: Any) -> int:
        if _is_less(compare, left, right):
            return -1
        return 1 if _is_less(compare, right, left) else 0

    return sorted(array, key=functools.cmp_to_key(order))


def _is_less(compare: Query, left: Any, right: Any) -> bool:
    result = compare({"left": left, "right": right})
    if type(result) is not bool:
        raise TypeMismatch(result, "bool", origin="sort argument")
    return result


@declare(
    "sort_by",
    _CATEGORY,
    Param("query", "query"),
    examples=(
        Example(
            "root.cheapest = this.sort_by(i -> i.price).index(0)",
            '[{"name":"cup","price":9},{"name":"tea","price":4}]',
            '{"cheapest":{"name":"tea","price":4}}',
        ),
    ),
    needs=("argument",),
)
def sort_by(origin: str, value: Any, query: Query) -> list[Any]:
    """The array in ascending order of the result of a query for each element."""
    array = array_of(value)
    return _sort_by_keys(array, [query(item) for item in array], "sort_by", origin)


@declare(
    "sum",
    _CATEGORY,
    examples=(Example("root.total = this.prices.sum()", '{"prices":[3,8,4]}', '{"total":15}'),),
)
def sum_(value: Any) -> Any:
    """The sum of an array's numbers."""
    if type(value) is list:
        kinds = set(map(type, value))
        if kinds <= {int}:
            return float(sum(value))
        if kinds <= NUMBER_TYPES:
            # Added one by one: Python's own sum of floats is not everywhere the plain one.
            return float(functools.reduce(lambda a, b: a + b, value, 0.0))
        bad = max(i for i, item in enumerate(value) if type(item) not in NUMBER_TYPES)
        raise UnplacedError(f"index {bad}: {TypeMismatch(value[bad], 'number')}")
    if type(value) in NUMBER_TYPES:
        return value
    raise TypeMismatch(value, "array")


@declare(
    "unique",
    _CATEGORY,
    Param("emit", "query", default=None),
    examples=(
        Example("root.users = this.unique()", '["ada","bob","ada"]', '{"users":["ada","bob"]}'),
        Example(
            "root.firsts = this.unique(v -> v.user)",
            '[{"user":"ada","page":1},{"user":"ada","page":2}]',
            '{"firsts":[{"page":1,"user":"ada"}]}',
        ),
    ),
)
def unique(value: Any, emit: Query | None) -> list[Any]:
    """The array without repeated texts and numbers, or without repeated results of a query."""
    array = array_of(value)
    if emit is None:
        kinds = set(map(type, array))
        if kinds in ({str}, {int}) or (kinds <= NUMBER_TYPES and not any(map(_is_nan, array))):
            return list(dict.fromkeys(array))
    seen: set[Any] = set()
    result = []
    for i, item in enumerate(array):
        check = _emit_element(emit, item, i) if emit is not None else item
        if type(check) is bytes:
            check = check.decode("utf-8", "surrogateescape")
        elif type(check) is Timestamp:
            check = str(check)
        if type(check) is not str and type(check) not in NUMBER_TYPES:
            raise QueryError(f"index {i}: {TypeMismatch(check, 'string', 'number')}")
        # What is not a number is like nothing else, though it be the same object.
        if check not in seen or _is_nan(check):
            seen.add(check)
            result.append(item)
    return result


def _is_nan(value: Any) -> bool:
    return bool(value != value)


def _emit_element(emit: Query, item: Any, i: int) -> Any:
    try:
        return emit(item)
    except Exception as e:
        raise PrefixedError(f"index {i}: ", e) from None


def _declare_compiled(name: str, summary: str, examples: tuple[Example, ...], param: str) -> Any:
    @declare(name, _CATEGORY, Param(param, "query"), examples=examples, summary=summary)
    def method(*_: Any) -> Any:
        raise AssertionError("the compiler writes this method out by itself")

    return method


map_each = _declare_compiled(
    "map_each",
    "The result of a query for each element of an array, or each entry of an object.",
    (
        Example(
            "root.gross = this.net.map_each(price -> (price * 1.2).round())",
            '{"net":[10,25]}',
            '{"gross":[12,30]}',
        ),
        Example(
            "root = this.map_each(item -> item.value.uppercase())",
            '{"name":"ada","city":"london"}',
            '{"city":"LONDON","name":"ADA"}',
        ),
    ),
    "query",
)
filter_ = _declare_compiled(
    "filter",
    "The elements of an array, or entries of an object, for which a query is true.",
    (
        Example("root.large = this.filter(n -> n > 10)", "[5,20]", '{"large":[20]}'),
        Example(
            "root = this.filter(item -> item.value != null)",
            '{"name":"Ada","age":null}',
            '{"name":"Ada"}',
        ),
    ),
    "test",
)
