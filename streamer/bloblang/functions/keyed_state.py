"""Functions that keep values of a key from message to message: previous, latest, running ones.

`lag`, `latest`, `had_changed` and `acc_…` are eKuiper's analytic functions (`lag(expr, offset,
default, ignoreNull) OVER (PARTITION BY key WHEN condition)`): the key is the one that the buffer
gives, and an `if` around the call takes the place of WHEN. Each call has values of its own, by what
it says; a `name` is a better one where calls are to share them, or to be written otherwise later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import STREAMER, Example, Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch
from streamer.bloblang.golib import operations
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.core.execution import Execution
from streamer.core.keyed_state import MISSING, UNAVAILABLE_TEXT, KeyedState
from streamer.core.value import DELETED, NOTHING

_CATEGORY = "State by Key"
_MAX_OFFSET = 10_000
_NAME = Param("name", "string", default="", literal=True)


def _state_of(ex: Execution, function: str) -> KeyedState:
    state = ex.keyed_state
    if state is None:
        raise QueryError(f"{function} {UNAVAILABLE_TEXT}")
    return state


def _place_of(state: KeyedState, function: str, call: str, name: str) -> str:
    """Return the name of a call's values: the given one, or one that only this call has."""
    return f"{function}:{name}" if name else f"{state.scope}/{call}"


def _or_null(value: Any) -> Any:
    """Return the value; null for what an `if` without an `else` gives."""
    return None if value is NOTHING or value is DELETED else value


def _check_offset(value: None, offset: int | None, *others: None) -> None:
    if offset is not None and not 1 <= offset <= _MAX_OFFSET:
        raise ArgumentError(f"offset must be from 1 to {_MAX_OFFSET}, got {offset}")


@declare(
    "lag",
    _CATEGORY,
    Param("value", "any"),
    Param("offset", "integer", default=1, literal=True),
    Param("default", "any", default=None),
    Param("ignore_null", "bool", default=True, literal=True),
    _NAME,
    examples=(
        Example("root.before = lag(this.celsius)", '{"celsius":20}', '{"before":null}'),
        Example("root.rise = this.n - lag(this.n, 1, 0)", '{"n":7}', '{"rise":7}'),
    ),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
    check=_check_offset,
)
def lag(
    ex: Execution,
    call: str,
    value: Any,
    offset: int,
    default: Any,
    ignore_null: bool,
    name: str,
) -> Any:
    """The value passed to the call `offset` calls ago, for the same key.

    A null is not kept, so that `lag(if this.ok { this.v })` is the value of the last message that
    was ok; with `ignore_null: false` it is kept like any other value.
    """
    value = _or_null(value)
    state = _state_of(ex, "lag")
    place = _place_of(state, "lag", call, name)
    kept = state.get(place)
    values = kept if type(kept) is list else []
    result = values[-offset] if len(values) >= offset else default
    if value is not None or not ignore_null:
        state.put(place, [*values, value][-offset:])
    return result


@declare(
    "latest",
    _CATEGORY,
    Param("value", "any"),
    Param("default", "any", default=None),
    _NAME,
    examples=(
        Example('root.city = latest(this.city, "?")', '{"city":null}', '{"city":"?"}'),
        Example('root.city = latest(this.city, "?")', '{"city":"Ulm"}', '{"city":"Ulm"}'),
    ),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
)
def latest(ex: Execution, call: str, value: Any, default: Any, name: str) -> Any:
    """The value, or if it is null the last value of the same key that was not null."""
    value = _or_null(value)
    state = _state_of(ex, "latest")
    place = _place_of(state, "latest", call, name)
    if value is not None:
        state.put(place, value)
        return value
    kept = state.get(place)
    return default if kept is MISSING else kept


@declare(
    "had_changed",
    _CATEGORY,
    Param("value", "any"),
    Param("ignore_null", "bool", default=False, literal=True),
    _NAME,
    examples=(
        Example("root = if !had_changed(this.on) { deleted() }", '{"on":true}', '{"on":true}'),
        Example("root.moved = had_changed([this.x, this.y])", '{"x":1,"y":2}', '{"moved":true}'),
    ),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
)
def had_changed(ex: Execution, call: str, value: Any, ignore_null: bool, name: str) -> bool:
    """True if the value differs from the value of the previous call for the same key.

    Before the first call it was null. With `ignore_null`, a null is no change, and is not kept;
    the same holds for each element of an array, by which several values are watched.
    """
    value = _or_null(value)
    state = _state_of(ex, "had_changed")
    place = _place_of(state, "had_changed", call, name)
    if value is None and ignore_null:
        return False
    kept = state.get(place)
    before = None if kept is MISSING else kept
    if ignore_null and type(value) is list and type(before) is list:
        same = len(before) == len(value)
        value = [before[at] if item is None and same else item for at, item in enumerate(value)]
    state.put(place, value)
    return not operations.is_same(before, value)


def _accumulate(
    ex: Execution,
    function: str,
    place: tuple[str, str],
    value: Any,
    combine: Callable[[Any, Any], Any],
) -> Any:
    """Return what a call has come to; a null changes nothing, and nothing has come of none."""
    value = _or_null(value)
    state = _state_of(ex, function)
    name = _place_of(state, function, *place)
    kept = state.get(name)
    if value is None:
        return None if kept is MISSING else kept
    if type(value) not in NUMBER_TYPES:
        raise TypeMismatch(value, "number")
    result = value if kept is MISSING or kept is None else combine(kept, value)
    state.put(name, result)
    return result


@declare(
    "acc_sum",
    _CATEGORY,
    Param("value", "any"),
    _NAME,
    examples=(Example("root.total = acc_sum(this.price)", '{"price":5}', '{"total":5}'),),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
)
def acc_sum(ex: Execution, call: str, value: Any, name: str) -> Any:
    """The sum of all numbers passed to the call for the same key; nulls are ignored."""
    total = _accumulate(ex, "acc_sum", (call, name), value, operations.add)
    return 0 if total is None else total


@declare(
    "acc_min",
    _CATEGORY,
    Param("value", "any"),
    _NAME,
    examples=(Example("root.low = acc_min(this.celsius)", '{"celsius":5}', '{"low":5}'),),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
)
def acc_min(ex: Execution, call: str, value: Any, name: str) -> Any:
    """The least number passed to the call for the same key; nulls are ignored."""
    return _accumulate(ex, "acc_min", (call, name), value, min)


@declare(
    "acc_max",
    _CATEGORY,
    Param("value", "any"),
    _NAME,
    examples=(Example("root.high = acc_max(this.celsius)", '{"celsius":5}', '{"high":5}'),),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
)
def acc_max(ex: Execution, call: str, value: Any, name: str) -> Any:
    """The largest number passed to the call for the same key; nulls are ignored."""
    return _accumulate(ex, "acc_max", (call, name), value, max)


@declare(
    "acc_count",
    _CATEGORY,
    Param("value", "any", default=True),
    _NAME,
    examples=(
        Example("root.number = acc_count()", "{}", '{"number":1}'),
        Example("root.seen = acc_count(this.id)", '{"id":null}', '{"seen":0}'),
    ),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
)
def acc_count(ex: Execution, call: str, value: Any, name: str) -> int:
    """The number of values passed to the call for the same key; nulls are ignored."""
    counted = None if _or_null(value) is None else 1
    count = _accumulate(ex, "acc_count", (call, name), counted, operations.add)
    return 0 if count is None else int(count)


@declare(
    "acc_avg",
    _CATEGORY,
    Param("value", "any"),
    _NAME,
    examples=(Example("root.mean = acc_avg(this.price)", '{"price":5}', '{"mean":5}'),),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
)
def acc_avg(ex: Execution, call: str, value: Any, name: str) -> Any:
    """The mean of all numbers passed to the call for the same key; nulls are ignored."""
    value = _or_null(value)
    state = _state_of(ex, "acc_avg")
    place = _place_of(state, "acc_avg", call, name)
    kept = state.get(place)
    total, count = kept if type(kept) is list else (0, 0)
    if value is not None:
        if type(value) not in NUMBER_TYPES:
            raise TypeMismatch(value, "number")
        total, count = operations.add(total, value), count + 1
        state.put(place, [total, count])
    return operations.divide(total, count) if count else None


def _check_name(name: str, *others: None) -> None:
    if not name:
        raise ArgumentError("name must not be empty")


@declare(
    "accumulate",
    _CATEGORY,
    Param("name", "string", literal=True),
    Param("initial", "any"),
    Param("query", "query"),
    examples=(
        Example(
            'root.since = accumulate("since", 0, n -> if this.alert { 0 } else { n + 1 })',
            '{"alert":false}',
            '{"since":1}',
        ),
        Example(
            'root.last = accumulate("three", [], l -> l.append(this.n).slice(-3))',
            '{"n":4}',
            '{"last":[4]}',
        ),
    ),
    needs=("ex", "call_name"),
    uses=("keyed_state",),
    origin=STREAMER,
    check=_check_name,
)
def accumulate(
    ex: Execution, call: str, name: str, initial: Any, query: Callable[[Any], Any]
) -> Any:
    """The result of a lambda on its previous result for the same key, at first on `initial`.

    `this` is the message, as everywhere. With `deleted()` the value is forgotten; with `nothing()`
    it stays. Calls with the same name share one value.
    """
    state = _state_of(ex, "accumulate")
    place = f"accumulate:{name}"
    kept = state.get(place)
    before = initial if kept is MISSING else kept
    result = query(before)
    if result is NOTHING:
        return before
    if result is DELETED:
        state.put(place, MISSING)
        return None
    state.put(place, result)
    return result
