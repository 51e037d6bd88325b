"""Methods on numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import QueryError, TypeMismatch
from streamer.bloblang.golib import gomath
from streamer.bloblang.golib.operations import NUMBER_TYPES, truncate
from streamer.core.value import INT64_MAX, INT64_MIN, UInt

_CATEGORY = "Number Manipulation"


def _require_number(value: Any) -> Any:
    if type(value) in NUMBER_TYPES:
        return value
    raise TypeMismatch(value, "number")


def _to_int_if_whole(value: float) -> int | float:
    """Return a float without fraction as an integer when int64 holds it."""
    if value != value or not -9.223372036854776e18 <= value < 9.223372036854776e18:
        return value
    return int(value)


def _declare_rounding(
    name: str, summary: str, to_whole: Callable[[float], float], result: str
) -> Any:
    example = Example(f"root = this.price.{name}()", '{"price":4.5}', result)

    @declare(name, _CATEGORY, examples=(example,), summary=summary)
    def method(value: Any) -> int | float:
        if type(value) is int or type(value) is UInt:
            return value
        number = float(_require_number(value))
        return _to_int_if_whole(to_whole(number)) if math.isfinite(number) else number

    return method


def _round_half_away(value: float) -> float:
    whole = math.trunc(value)
    return whole + math.copysign(1, value) if abs(value - whole) >= 0.5 else float(whole)


ceil = _declare_rounding("ceil", "The number rounded up.", lambda x: float(math.ceil(x)), "5")
floor = _declare_rounding("floor", "The number rounded down.", lambda x: float(math.floor(x)), "4")
round_ = _declare_rounding(
    "round", "The number rounded, halves away from zero.", _round_half_away, "5"
)


def _declare_real(
    name: str,
    summary: str,
    run: Callable[[float], float],
    own_errors: bool,
    example_input: str,
    result: str,
) -> Any:
    example = Example(f"root = this.a.{name}()", f'{{"a":{example_input}}}', result)

    @declare(name, _CATEGORY, own_errors=own_errors, summary=summary, examples=(example,))
    def method(value: Any) -> float:
        number = float(_require_number(value))
        try:
            return run(number)
        except (ValueError, OverflowError):
            return math.nan if number != 0 else -math.inf

    return method


log = _declare_real("log", "The natural logarithm.", math.log, False, "1", "0")
log10 = _declare_real("log10", "The logarithm to base 10.", gomath.log10, False, "100", "2")
sin = _declare_real("sin", "The sine of an angle in radians.", gomath.sin, True, "0", "0")
cos = _declare_real("cos", "The cosine of an angle in radians.", gomath.cos, True, "0", "1")
tan = _declare_real("tan", "The tangent of an angle in radians.", gomath.tan, True, "0", "0")


@declare(
    "pow",
    _CATEGORY,
    Param("exponent", "float"),
    examples=(Example("root.area = this.side.pow(2)", '{"side":3}', '{"area":9}'),),
    own_errors=True,
)
def pow_(value: Any, exponent: float) -> float:
    """The number raised to a power."""
    try:
        return math.pow(float(_require_number(value)), exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


@declare(
    "abs",
    _CATEGORY,
    examples=(Example("root.distance = this.delta.abs()", '{"delta":-2.5}', '{"distance":2.5}'),),
    own_errors=True,
)
def abs_(value: Any) -> int | float:
    """The number without its sign."""
    if type(value) is UInt:
        return value
    if type(value) is int:
        return INT64_MAX if value == INT64_MIN else abs(value)
    if type(value) in NUMBER_TYPES:
        return abs(float(value))
    raise TypeMismatch(value, "number", "integer")


def _declare_extreme(
    name: str, summary: str, pick: Callable[[list[float]], float], result: str
) -> Any:
    @declare(
        name,
        _CATEGORY,
        examples=(Example(f"root = this.celsius.{name}()", '{"celsius":[28,33,31]}', result),),
        summary=summary,
    )
    def method(value: Any) -> float:
        if type(value) is not list:
            raise TypeMismatch(value, "array")
        if not value:
            raise QueryError("the array was empty")
        for i, item in enumerate(value):
            if type(item) not in NUMBER_TYPES:
                raise QueryError(f"index {i} of array: {TypeMismatch(item, 'number')}")
        return float(pick(value))

    return method


max_ = _declare_extreme("max", "The largest number of an array.", max, "33")
min_ = _declare_extreme("min", "The smallest number of an array.", min, "28")


def _declare_bitwise(name: str, summary: str, run: Callable[[int, int], int], result: str) -> Any:
    @declare(
        name,
        _CATEGORY,
        Param("value", "integer"),
        examples=(Example(f"root = this.a.{name}(6)", '{"a":12}', result),),
        summary=summary,
    )
    def method(value: Any, other: int) -> int:
        if type(value) not in NUMBER_TYPES:
            raise TypeMismatch(value, "integer")
        return run(truncate(value), other)

    return method


bitwise_and = _declare_bitwise("bitwise_and", "Bits set in both.", lambda a, b: a & b, "4")
bitwise_or = _declare_bitwise("bitwise_or", "Bits set in one or both.", lambda a, b: a | b, "14")
bitwise_xor = _declare_bitwise("bitwise_xor", "Bits set in one only.", lambda a, b: a ^ b, "10")
