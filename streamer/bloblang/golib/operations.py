"""Arithmetic and comparison with Go's types: int64 that wraps, float64, text.

Source: Benthos `internal/bloblang/query/arithmetic.go`, `internal/value/type_helpers.go`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.errors import DivideByZeroError, OperandMismatch
from streamer.core.timestamps import Timestamp
from streamer.core.value import INT64_MAX, INT64_MIN, UINT64_MAX, Number, UInt

FLOAT_TYPES: Final = frozenset((float, Number))
NUMBER_TYPES: Final = frozenset((int, float, Number, UInt))
# A float holds every integer up to here.
EXACT: Final = 1 << 53
_UINT64_SPAN: Final = 1 << 64


def wrap_int64(value: int) -> int:
    """Reduce an integer to int64 the way an overflow does."""
    return (value + (1 << 63)) % _UINT64_SPAN - (1 << 63)


def _apply_unsigned(run: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result for two numbers of which one is uint64."""
    if type(left) in FLOAT_TYPES or type(right) in FLOAT_TYPES:
        return run(float(left), float(right))
    if type(left) is UInt and type(right) is UInt:
        return UInt(run(int(left), int(right)) & UINT64_MAX)
    return wrap_int64(run(wrap_int64(left), wrap_int64(right)))


def _wrap_result(left: int, right: int, result: int) -> int:
    """Return the result of int64 arithmetic; of uint64 when both operands are beyond int64."""
    if INT64_MIN <= result <= INT64_MAX:
        return result
    if left > INT64_MAX and right > INT64_MAX:
        return result & UINT64_MAX
    return wrap_int64(result)


def add(left: Any, right: Any) -> Any:
    """Return left + right: numbers, or texts joined."""
    kind = type(left)
    other = type(right)
    if kind is int and other is int:
        result: int = left + right
        return result if INT64_MIN <= result <= INT64_MAX else _wrap_result(left, right, result)
    if kind in NUMBER_TYPES and other in NUMBER_TYPES:
        if kind is UInt or other is UInt:
            return _apply_unsigned(operator.add, left, right)
        return left + right
    if kind is str and other is str:
        return left + right
    if kind is str or kind is bytes:
        text = text_or_none(right)
        if text is not None:
            return (left if kind is str else left.decode("utf-8", "surrogateescape")) + text
    raise OperandMismatch("add", left, right)


def subtract(left: Any, right: Any) -> Any:
    """Return left - right."""
    kind = type(left)
    other = type(right)
    if kind is int and other is int:
        result: int = left - right
        return result if INT64_MIN <= result <= INT64_MAX else _wrap_result(left, right, result)
    if kind in NUMBER_TYPES and other in NUMBER_TYPES:
        if kind is UInt or other is UInt:
            return _apply_unsigned(operator.sub, left, right)
        return left - right
    raise OperandMismatch("subtract", left, right)


def multiply(left: Any, right: Any) -> Any:
    """Return left * right."""
    kind = type(left)
    other = type(right)
    if kind is int and other is int:
        result: int = left * right
        return result if INT64_MIN <= result <= INT64_MAX else _wrap_result(left, right, result)
    if kind in NUMBER_TYPES and other in NUMBER_TYPES:
        if kind is UInt or other is UInt:
            return _apply_unsigned(operator.mul, left, right)
        return left * right
    raise OperandMismatch("multiply", left, right)


def divide(left: Any, right: Any) -> float:
    """Return left / right, always a float."""
    if type(left) not in NUMBER_TYPES or type(right) not in NUMBER_TYPES:
        raise OperandMismatch("divide", left, right)
    if not right:
        raise DivideByZeroError
    try:
        return float(left) / float(right)
    except OverflowError:
        return float("inf") if (left < 0) is (right < 0) else float("-inf")


def truncate(value: Any) -> int:
    """Return a number as int64, its fraction cut off."""
    if isinstance(value, int):
        return int(value) if value <= INT64_MAX else wrap_int64(value)
    # What does not fit becomes the smallest integer, as it does on amd64.
    return int(value) if -(2.0**63) <= value < 2.0**63 else INT64_MIN


def modulo(left: Any, right: Any) -> int:
    """Return the remainder of integer division; its sign is that of left."""
    if type(left) not in NUMBER_TYPES or type(right) not in NUMBER_TYPES:
        raise OperandMismatch("modulo", left, right)
    dividend, divisor = truncate(left), truncate(right)
    if not divisor:
        raise DivideByZeroError
    rest = abs(dividend) % abs(divisor)
    return -rest if dividend < 0 else rest


def text_or_none(value: Any) -> str | None:
    """Return a text, bytes as text, or a timestamp's text; None for anything else."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is bytes:
        return value.decode("utf-8", "surrogateescape")  # type: ignore[no-any-return]
    return str(value) if kind is Timestamp else None


def is_equal(left: Any, right: Any) -> bool:
    """Whether two values are equal as `==` sees it: numbers by value, bytes as text.

    A boolean on the left takes a number on the right as its truth, as Benthos has it.
    """
    kind = type(left)
    if kind is type(right) and (kind is str or kind is int):
        return left == right  # type: ignore[no-any-return]
    if kind is bool:
        other = type(right)
        return other is bool and left is right or other in NUMBER_TYPES and left is (right != 0)
    if kind in NUMBER_TYPES:
        other = type(right)
        if kind is not other and other in NUMBER_TYPES:
            left, right = _to_common_type(left, right)
        return other in NUMBER_TYPES and left == right
    text = text_or_none(left)
    if text is not None:
        return text == text_or_none(right)
    return is_same(left, right)


def is_same(left: Any, right: Any) -> bool:
    """Whether two values of any depth are equal, as `contains` and match literals see it."""
    kind = type(left)
    if kind is list:
        return type(right) is list and len(left) == len(right) and all(map(is_same, left, right))
    if kind is dict:
        return (
            type(right) is dict
            and len(left) == len(right)
            and all(is_same(value, right.get(key)) for key, value in left.items())
        )
    if left is None:
        return right is None
    return kind in _SCALAR_TYPES and is_equal(left, right)


_SCALAR_TYPES: Final = frozenset((str, bytes, bool, Timestamp)) | NUMBER_TYPES


def is_not_equal(left: Any, right: Any) -> bool:
    """Return the opposite of `is_equal`."""
    return not is_equal(left, right)


def _to_common_type(left: Any, right: Any) -> tuple[Any, Any]:
    """Return numbers of two types as they are compared: float64, or int64 beside uint64."""
    if isinstance(left, int) and isinstance(right, int):
        return wrap_int64(left), wrap_int64(right)
    return float(left), float(right)


def _comparable_pair(left: Any, right: Any) -> tuple[Any, Any]:
    if type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
        return (left, right) if type(left) is type(right) else _to_common_type(left, right)
    texts = text_or_none(left), text_or_none(right)
    if texts[0] is None or texts[1] is None:
        raise OperandMismatch("compare", left, right)
    return texts


def is_less(left: Any, right: Any) -> bool:
    """Whether left < right: two numbers or two texts."""
    left, right = _comparable_pair(left, right)
    return left < right  # type: ignore[no-any-return]


def is_less_or_equal(left: Any, right: Any) -> bool:
    """Whether left <= right."""
    left, right = _comparable_pair(left, right)
    return left <= right  # type: ignore[no-any-return]


def is_greater(left: Any, right: Any) -> bool:
    """Whether left > right."""
    left, right = _comparable_pair(left, right)
    return left > right  # type: ignore[no-any-return]


def is_greater_or_equal(left: Any, right: Any) -> bool:
    """Whether left >= right."""
    left, right = _comparable_pair(left, right)
    return left >= right  # type: ignore[no-any-return]


def truth_value(value: Any) -> bool | None:
    """Return a boolean, a number as whether it is not 0, or None for anything else."""
    if value is True or value is False:
        return value
    if type(value) is Number:
        return value.text != "0"  # a document's number counts by its text: 0.0 is true
    if type(value) in NUMBER_TYPES:
        return value != 0  # type: ignore[no-any-return]
    return None
