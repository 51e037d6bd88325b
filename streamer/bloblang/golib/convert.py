"""Conversions that methods share: numbers, booleans and timestamps from values of other types."""

from __future__ import annotations

import re
from typing import Any, Final

from streamer.bloblang.errors import QueryError, TypeMismatch
from streamer.bloblang.golib.goquote import quote
from streamer.bloblang.golib.operations import NUMBER_TYPES, truncate, truth_value, wrap_int64
from streamer.core.timestamps import SECOND, Timestamp, parse_rfc3339
from streamer.core.value import INT64_MAX, INT64_MIN, UINT64_MAX, Number, UInt, parse_bounded_int

_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:\d[\d_]*)?\.?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\d+\.|inf|infinity|nan)",
    re.IGNORECASE,
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX]_?(?:[0-9a-fA-F](?:_?[0-9a-fA-F])*\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+"
)
_SEPARATOR: Final = re.compile(r"(?<=[0-9])_(?=[0-9])")
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def text_of(value: Any, *expected: str) -> str:
    """Return a text, or bytes as text.

    Raises:
        TypeMismatch: the value is neither.
    """
    if type(value) is str:
        return value
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    if type(value) is Timestamp:
        return str(value)
    raise TypeMismatch(value, *(expected or ("string",)))


def bytes_of(value: Any) -> bytes:
    """Return bytes, or a text as bytes.

    Raises:
        TypeMismatch: the value is neither.
    """
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode("utf-8", "surrogateescape")
    raise TypeMismatch(value, "string")


def array_of(value: Any) -> list[Any]:
    """Return an array as it is.

    Raises:
        TypeMismatch: the value is none.
    """
    if type(value) is list:
        return value
    raise TypeMismatch(value, "array")


def parse_float(text: str) -> float:
    """Read a float as Go's strconv does.

    Raises:
        QueryError: the text is no number, in Go's words.
    """
    digits = _SEPARATOR.sub("", text) if "_" in text else text
    if _FLOAT.fullmatch(digits) and "_" not in digits:
        value = float(digits)
        if value in (float("inf"), float("-inf")) and "n" not in text.lower():
            raise QueryError(f"strconv.ParseFloat: parsing {quote(text)}: value out of range")
        return value
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except OverflowError:
            pass
        raise QueryError(f"strconv.ParseFloat: parsing {quote(text)}: value out of range")
    raise QueryError(f"strconv.ParseFloat: parsing {quote(text)}: invalid syntax")


def to_float(value: Any) -> float:
    """Return a number, or a text read as one, as float64."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if kind in NUMBER_TYPES:
        return float(value)
    if kind is str:
        return parse_float(value)
    if kind is bytes:
        return parse_float(value.decode("utf-8", "surrogateescape"))
    raise TypeMismatch(value, "number")


# More digits than any int64 has, in base 2 too; Python itself stops at 4,300.
_MAX_DIGITS: Final = 100
_INTEGER: Final = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F](?:_?[0-9a-fA-F])*)|0[bB]([01](?:_?[01])*)"
    r"|0[oO]?([0-7](?:_?[0-7])*)|(0|[1-9](?:_?[0-9])*))"
)


_INTEGER_PREFIX: Final = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F_]*)|0[bB]([01_]*)|0[oO]?([0-7_]*)|([0-9_]*))"
)


def _exceeds_uint64(text: str, signed: bool) -> bool:
    """Whether a text that is no integer begins with more than uint64 holds.

    Go reads digit by digit, and stops at whichever it meets first.
    """
    match = _INTEGER_PREFIX.match(text)
    if match is None or (match[1] and not signed):
        return False
    for digits, base in zip(match.groups()[1:], (16, 2, 8, 10), strict=True):
        if digits is not None:
            digits = digits.replace("_", "").lstrip("0")
            return len(digits) > _MAX_DIGITS or int(digits or "0", base) > UINT64_MAX
    return False


def parse_int(text: str, function: str) -> int:
    """Read an integer as Go does, with its prefixes for other bases; unbounded.

    Args:
        text: the text.
        function: the name that Go's error starts with.
    """
    match = _INTEGER.fullmatch(text)
    if match is None or (function == "ParseUint" and match[1]):
        if _exceeds_uint64(text, function == "ParseInt"):
            return -1 << 64 if text[0] == "-" else 1 << 64
        raise QueryError(f"strconv.{function}: parsing {quote(text)}: invalid syntax")
    sign, sixteen, two, eight, ten = match.groups()
    for digits, base in ((sixteen, 16), (two, 2), (eight, 8), (ten, 10)):
        if digits is not None:
            digits = digits.replace("_", "").lstrip("0") or "0"
            value = int(digits, base) if len(digits) <= _MAX_DIGITS else 1 << 64
            return -value if sign == "-" else value
    return 0


def to_int(value: Any) -> int:
    """Return an integer number, or a text read as one, as int64.

    Raises:
        QueryError: the value has a fraction, lies outside, or is no number.
    """
    kind = type(value)
    if kind is int or kind is UInt:
        if value > INT64_MAX:
            raise QueryError("unsigned integer value is too large to be cast as a signed integer")
        return int(value)
    if kind is Number:
        text = value.text
        try:
            number = parse_bounded_int(text)
        except ValueError:
            raise QueryError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax") from None
        return _check_range(number, text, "ParseInt", INT64_MIN, INT64_MAX)
    if kind is float:
        return _whole_to_int(value, "a signed", float(INT64_MIN), float(INT64_MAX))
    if kind is str or kind is bytes:
        text = text_of(value)
        return _check_range(parse_int(text, "ParseInt"), text, "ParseInt", INT64_MIN, INT64_MAX)
    raise TypeMismatch(value, "number")


def _check_range(number: int, text: str, function: str, low: int, high: int) -> int:
    if low <= number <= high:
        return number
    raise QueryError(f"strconv.{function}: parsing {quote(text)}: value out of range")


def _whole_to_int(value: float, kind: str, low: float, high: float) -> int:
    article = "an integer" if kind == "a signed" else "an unsigned integer"
    if value != value:
        raise QueryError(f"cannot convert NAN to {article}")
    if value in (float("inf"), float("-inf")):
        raise QueryError(f"cannot convert +/-INF to {article}")
    if value > high:
        raise QueryError(f"float value is too large to be cast as {kind} integer")
    if value < low:
        raise QueryError(f"float value is too small to be cast as {kind} integer")
    if value % 1:
        raise QueryError(
            "float value contains decimals and therefore cannot be cast as "
            f"{kind} integer, if you intend to round the value then call `.round()` explicitly "
            "before this cast"
        )
    return int(value)


def to_uint(value: Any) -> int:
    """Return an integer number, or a text read as one, as uint64."""
    kind = type(value)
    if kind is float and value < 0:
        raise QueryError("float value is negative and cannot be cast as an unsigned integer")
    if kind is float:
        return UInt(_whole_to_int(value, "an unsigned", 0.0, float(UINT64_MAX)))
    if kind is str or kind is bytes:
        text = text_of(value)
        return UInt(_check_range(parse_int(text, "ParseUint"), text, "ParseUint", 0, UINT64_MAX))
    number = value if kind is int or kind is UInt else to_int(value)
    if number < 0:
        raise QueryError(
            "signed integer value is negative and cannot be cast as an unsigned integer"
        )
    return UInt(number)


def to_bool(value: Any) -> bool:
    """Return a boolean, a number as whether it is not 0, or a text such as `true`, `0`, `F`."""
    result = truth_value(value)
    if result is not None:
        return result
    if type(value) in (str, bytes):
        text = text_of(value)
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
    raise TypeMismatch(value, "bool")


def _read_timestamp(text: str) -> Timestamp:
    try:
        return parse_rfc3339(text)
    except ValueError:
        # Go's words for what is wrong, from the reader of layouts.
        from streamer.bloblang.golib.goparse import parse_time

        return parse_time(text, "2006-01-02T15:04:05.999999999Z07:00")


def to_timestamp(value: Any) -> Timestamp:
    """Return a timestamp: Unix seconds as a number, or an RFC 3339 text."""
    kind = type(value)
    if kind is Timestamp:
        return value  # type: ignore[no-any-return]
    if kind is int or kind is UInt:
        return Timestamp(wrap_int64(value) * SECOND)
    if kind in NUMBER_TYPES:
        whole = truncate(value)
        fraction = value - whole if abs(whole) < 1 << 53 else 0.0
        return Timestamp(whole * SECOND + int(fraction * 1e9))
    if kind is str or kind is bytes:
        return _read_timestamp(text_of(value))
    raise TypeMismatch(value, "number", "string")
