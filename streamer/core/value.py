"""Bloblang's value model over plain Python.

A value is None, bool, int, float, str, bytes, list, dict, or a `Timestamp` (timestamps.py). An int
is Go's int64, unless it is a `UInt`, which is uint64. Two sentinels stand for the absence of one:
`DELETED` and `NOTHING`. A number of an input document whose text orjson would not give back
(`1.50`, `1e3`, 20 digits) is a `Number`, which keeps its text until arithmetic touches it, as Go's
`json.Number` does. Source: Benthos `internal/value`.
"""

from __future__ import annotations

import math
from typing import Any, Final

from streamer.core.timestamps import Timestamp

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
UINT64_MAX: Final = (1 << 64) - 1


class _Sentinel:
    """A value that stands for the absence of one; there is one object of each."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name


DELETED: Final = _Sentinel("DELETED")
NOTHING: Final = _Sentinel("NOTHING")


class Number(float):
    """A float that keeps the text it is written with; arithmetic gives a plain float."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str, value: float | None = None) -> Number:
        """Make a number from its text, and from its value when the text is only its spelling."""
        self = super().__new__(cls, text if value is None else value)
        self.text = text
        return self

    def __reduce__(self) -> tuple[type[Number], tuple[str, float]]:
        # The text of what `float32` gives is shorter than its value: 0.1 for 0.10000000149011612.
        return (Number, (self.text, float(self)))


class UInt(int):
    """An integer of Go's type uint64; with another one it stays one, with all else it is int64."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[UInt], tuple[int]]:
        return (UInt, (int(self),))


_TYPE_NAMES: Final[dict[type, str]] = {
    str: "string",
    bytes: "bytes",
    bool: "bool",
    int: "number",
    UInt: "number",
    float: "number",
    Number: "number",
    Timestamp: "timestamp",
    list: "array",
    dict: "object",
    type(None): "null",
}


def type_name(value: Any) -> str:
    """Return the name that Bloblang gives to a value's type (`string`, `number`, …)."""
    if value is DELETED:
        return "delete"
    if value is NOTHING:
        return "nothing"
    return _TYPE_NAMES.get(type(value), "unknown")


MAX_DIGITS: Final = 4_000
"""Of how many digits an int is made: Python refuses somewhat more, in words of its own."""


def parse_bounded_int(text: str | bytes) -> int:
    """Return a whole number, or one beyond 64 bits for all that have too many digits.

    Args:
        text: decimal digits, with a sign or without.

    Raises:
        ValueError: it is none.
    """
    if len(text) <= MAX_DIGITS:
        return int(text)
    return -(1 << 64) if text[:1] in ("-", b"-") else 1 << 64


def as_go_float(value: float) -> float:
    """Return a float that orjson would spell otherwise than Go as a `Number` in Go's spelling."""
    if value % 1 != 0 and 1e-5 < abs(value) < 1e16:
        return value
    if value != value or value in (float("inf"), float("-inf")):
        return value
    return Number(format_json_float(value), value)


def _split_digits(value: float) -> tuple[str, str, int]:
    """Split a finite float into sign, shortest decimal digits, and the point's place in them."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    stripped = stripped.rstrip("0")
    return ("-" if math.copysign(1, value) < 0 else ""), stripped or "0", point if stripped else 1


def _format_plain(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if len(digits) <= point:
        return digits + "0" * (point - len(digits))
    return digits[:point] + "." + digits[point:]


def _format_exponent(digits: str, point: int, width: int) -> str:
    exponent = point - 1
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    sign = "-" if exponent < 0 else "+"
    return f"{digits[0]}{fraction}e{sign}{abs(exponent):0{width}d}"


def format_json_float(value: float) -> str:
    """Spell a finite float as Go's encoding/json does (`15`, `0.000001`, `1e+21`, `1e-7`)."""
    sign, digits, point = _split_digits(value)
    if value != 0 and not 1e-6 <= abs(value) < 1e21:
        return sign + _format_exponent(digits, point, 1)
    return sign + _format_plain(digits, point)


def format_float(value: float) -> str:
    """Spell a float as Go's `%v` and `strconv.FormatFloat(f, 'g', -1, 64)` do (`5.61741e+09`)."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, point = _split_digits(value)
    # Go's shortest form turns to an exponent below 1e-04 and from 1e+06 on.
    if value != 0 and not -4 <= point - 1 < 6:
        return sign + _format_exponent(digits, point, 2)
    return sign + _format_plain(digits, point)
