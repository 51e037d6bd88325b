"""The operators of gval, the Go library whose expressions Connect's JSONPath takes.

An operator first looks whether both sides are numbers, booleans or texts already, then whether
they can be read as such; only then it compares them as they are, or fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import parse_float
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.bloblang.golib.text import go_text, go_type

# Takes the root of the document and the element at hand.
Evaluate = Callable[[Any, Any], Any]

PRECEDENCE: Final[dict[str, int]] = {
    "??": 0,
    "||": 20,
    "&&": 21,
    **dict.fromkeys(("==", "!=", ">", ">=", "<", "<=", "=~", "!~", "in"), 40),
    **dict.fromkeys(("^", "&", "|"), 60),
    **dict.fromkeys(("<<", ">>"), 90),
    **dict.fromkeys(("+", "-"), 120),
    **dict.fromkeys(("*", "/", "%"), 150),
    "**": 200,
}
"""How strongly each operator binds its sides; all group from the left."""


def make_constant(value: Any) -> Evaluate:
    """Return an expression that is always the same."""
    return lambda root, current: value


def _read_number(value: Any) -> float | None:
    kind = type(value)
    if kind in NUMBER_TYPES:
        return value  # type: ignore[no-any-return]
    if kind is str:
        try:
            return parse_float(value)
        except QueryError:
            return None
    return None


def _read_boolean(value: Any) -> bool | None:
    if value is None or value is False or value in ("false", "FALSE"):
        return False
    if value is True or value in ("true", "TRUE"):
        return True
    number = _read_number(value)
    return None if number is None else number != 0


def to_int(value: Any) -> int:
    """Return a number, or a text read as one, without its fraction."""
    number = _read_number(value)
    if number is None or number != number or abs(number) == math.inf:
        actual = f"{go_text(value)} ({go_type(value)})"
        raise QueryError(f"expected number but got {actual}")
    return int(number)


def to_string(value: Any) -> str:
    """Return a value as text."""
    return value if type(value) is str else go_text(value)


def to_condition(value: Any) -> bool:
    """Return whether a filter lets an element through."""
    truth = _read_boolean(value)
    if truth is None:
        raise QueryError(f"expected bool but got {go_text(value)} ({go_type(value)})")
    return truth


def _is_zero(value: Any) -> bool:
    return (
        value is None or value is False or value == "" or type(value) in NUMBER_TYPES and value == 0
    )


def _divide(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a)
    return a / b


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "-": lambda a, b: float(a - b),
    "*": lambda a, b: float(a * b),
    "/": _divide,
    "%": lambda a, b: math.fmod(a, b) if b else math.nan,
    "**": _power,
    "^": lambda a, b: float(int(a) ^ int(b)),
    "&": lambda a, b: float(int(a) & int(b)),
    "|": lambda a, b: float(int(a) | int(b)),
    "<<": lambda a, b: float(int(a) << min(int(b), 64)),
    ">>": lambda a, b: float(int(a) >> min(int(b), 64)),
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _invalid_operation(sign: str, a: Any, b: Any) -> QueryError:
    return QueryError(f"invalid operation ({go_type(a)}) {sign} ({go_type(b)})")


def _add(a: Any, b: Any) -> Any:
    if type(a) in NUMBER_TYPES and type(b) in NUMBER_TYPES:
        return float(a + b)
    left, right = _read_number(a), _read_number(b)
    if (type(a) is not str or type(b) is not str) and left is not None and right is not None:
        return float(left + right)
    if a is None or b is None:
        raise _invalid_operation("+", a, b)
    return to_string(a) + to_string(b)


def _compare(sign: str, a: Any, b: Any) -> bool:
    order = _COMPARISONS[sign]
    if type(a) is str and type(b) is str:
        return order(a, b)
    left, right = _read_number(a), _read_number(b)
    if left is not None and right is not None:
        return order(left, right)
    if a is None or b is None:
        raise _invalid_operation(sign, a, b)
    return order(to_string(a), to_string(b))


def _equal(a: Any, b: Any) -> bool:
    for read in (_read_number, _read_boolean):
        left, right = read(a), read(b)
        if left is not None and right is not None:
            return left == right
    return type(a) is type(b) and bool(a == b)


def _same(a: Any, b: Any) -> bool:
    if type(a) in NUMBER_TYPES and type(b) in NUMBER_TYPES:
        return bool(a == b)
    return type(a) is type(b) and bool(a == b)


def _contains_value(a: Any, b: Any) -> bool:
    if type(b) is not list:
        raise QueryError(f"expected type []interface{{}} for in operator but got {go_type(b)}")
    return any(_same(a, item) for item in b)


def _matches_regex(a: Any, b: Any) -> bool:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.search(to_string(b), to_string(a), options=options) is not None
    except re2.error as e:
        raise QueryError(f"error parsing regexp: {e}") from None


def _calculate(sign: str, a: Any, b: Any) -> float:
    left, right = _read_number(a), _read_number(b)
    if left is None or right is None:
        raise _invalid_operation(sign, a, b)
    try:
        return _ARITHMETIC[sign](left, right)
    except (OverflowError, ValueError):
        raise QueryError(f"{go_text(a)} {sign} {go_text(b)} has no result") from None


def _make_operation(sign: str) -> Callable[[Any, Any], Any]:
    if sign in _COMPARISONS:
        return lambda a, b: _compare(sign, a, b)
    if sign in _ARITHMETIC:
        return lambda a, b: _calculate(sign, a, b)
    return {
        "+": _add,
        "==": _equal,
        "!=": lambda a, b: not _equal(a, b),
        "in": _contains_value,
        "=~": _matches_regex,
        "!~": lambda a, b: not _matches_regex(a, b),
        "??": lambda a, b: b if _is_zero(a) else a,
    }[sign]


def combine(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """Return the expression of an operator between two others."""
    if sign in ("&&", "||"):
        return _make_logical(sign, left, right)
    operation = _make_operation(sign)
    return lambda root, current: operation(left(root, current), right(root, current))


def _make_logical(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    decides = sign == "||"

    def evaluate(root: Any, current: Any) -> bool:
        a = left(root, current)
        if a is decides:
            return bool(a)
        b = right(root, current)
        first, second = _read_boolean(a), _read_boolean(b)
        if first is None or second is None:
            raise _invalid_operation(sign, a, b)
        return bool(first or second) if decides else bool(first and second)

    return evaluate


def make_choice(condition: Evaluate, value: Evaluate, other: Evaluate) -> Evaluate:
    """Return `condition ? chosen : other`; null, false, 0 and empty texts choose the other."""
    return lambda root, current: (other if _is_zero(condition(root, current)) else value)(
        root, current
    )


def make_negative(operand: Evaluate) -> Evaluate:
    """Return the operand with its sign turned."""

    def evaluate(root: Any, current: Any) -> float:
        value = operand(root, current)
        number = _read_number(value)
        if number is None:
            raise QueryError(f"unexpected {go_text(value)}({go_type(value)}) expected number")
        return -float(number)

    return evaluate


def make_complement(operand: Evaluate) -> Evaluate:
    """Return the operand, as an integer, with all bits turned."""

    def evaluate(root: Any, current: Any) -> float:
        value = operand(root, current)
        if _read_number(value) is None:
            raise QueryError(f"unexpected {go_type(value)} expected number")
        return float(~to_int(value))

    return evaluate


def make_inverse(operand: Evaluate) -> Evaluate:
    """Return whether the operand is not true."""

    def evaluate(root: Any, current: Any) -> bool:
        value = operand(root, current)
        truth = _read_boolean(value)
        if truth is None:
            raise QueryError(f"unexpected {go_type(value)} expected bool")
        return not truth

    return evaluate


def make_variable(keys: list[Evaluate]) -> Evaluate:
    """Return a field of the document, null where there is none."""

    def evaluate(root: Any, current: Any) -> Any:
        value = root
        for key in keys:
            if type(value) is dict:
                value = value.get(to_string(key(root, current)))
            elif type(value) is list:
                index = to_int(key(root, current))
                value = value[index] if 0 <= index < len(value) else None
            else:
                return None
        return value

    return evaluate
