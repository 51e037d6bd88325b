"""Bloblang's value model over plain Python, and JSON as Benthos reads and writes it.

A value is None, bool, int, float, str, bytes, list, dict, or a `Timestamp` (timestamps.py). An int
is Go's int64, unless it is a `UInt`, which is uint64. Two sentinels stand for the absence of one:
`DELETED` and `NOTHING`. A number of an input document whose text orjson would not give back
(`1.50`, `1e3`, 20 digits) is a `Number`, which keeps its text until arithmetic touches it, as Go's
`json.Number` does. Source: Benthos `internal/value`, `internal/message/util.go`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import orjson

from streamer.core.json.number_spelling import (
    differs_from_go,
    has_exponent,
    has_long_number,
    has_odd_number,
    has_plain_numbers,
    keeps_long_numbers,
    remove_decimal_points,
)
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


_MAX_DIGITS: Final = 4_000
"""Of how many digits an int is made: Python refuses somewhat more, in words of its own."""


def parse_bounded_int(text: str | bytes) -> int:
    """Return a whole number, or one beyond 64 bits for all that have too many digits.

    Args:
        text: decimal digits, with a sign or without.

    Raises:
        ValueError: it is none.
    """
    if len(text) <= _MAX_DIGITS:
        return int(text)
    return -(1 << 64) if text[:1] in ("-", b"-") else 1 << 64


def parse_json_int(text: str) -> int:
    """Return a number of a JSON document, for `json.parser`.

    Raises:
        ValueError: it has more digits than any number of 64 bits, a float too.
    """
    if len(text) <= _MAX_DIGITS:
        return int(text)
    raise ValueError(f"the number {text[:20]}… has {len(text)} digits: value out of range")


def _parse_exact_int(text: str) -> int | Number:
    if len(text) > 20:
        return Number(text)
    value = int(text)
    return value if INT64_MIN <= value <= INT64_MAX and text != "-0" else Number(text, float(value))


def _parse_exact_float(text: str) -> float:
    return Number(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"invalid value {text}")


_EXACT: Final = json.JSONDecoder(
    parse_float=_parse_exact_float, parse_int=_parse_exact_int, parse_constant=_refuse_constant
)


def parse_json(raw: bytes) -> Any:
    """Parse one JSON document; numbers keep value and text (see `Number`).

    Invalid UTF-8 inside strings becomes U+FFFD, as in Go.

    Raises:
        ValueError: the text is not one JSON document; says what was found, in Go's words.

    Example:
        >>> parse_json(b'{"id": 12, "tags": ["a"]}')
        {'id': 12, 'tags': ['a']}
    """
    try:
        document = orjson.loads(raw)
    except ValueError as e:
        return _parse_leniently(raw, e)
    if has_plain_numbers(raw):
        return document
    exact = has_odd_number(raw) or (has_long_number(raw) and not keeps_long_numbers(raw, document))
    return _EXACT.decode(raw.decode()) if exact else document


def parse_json_long(raw: bytes) -> Any:
    """Parse one JSON document that holds no odd number, as `parse_json` does.

    Raises:
        ValueError: as `parse_json`; also for what that takes and orjson does not.
    """
    document = orjson.loads(raw)
    return document if keeps_long_numbers(raw, document) else _EXACT.decode(raw.decode())


def _parse_leniently(raw: bytes, error: ValueError) -> Any:
    """Parse what orjson refuses and Go takes: invalid UTF-8, lone surrogates, 1e400."""
    if not raw:
        raise ValueError("message is empty") from None
    try:
        document = _EXACT.decode(raw.decode(errors="replace"))
    except (ValueError, RecursionError):
        from streamer.core.json.json_fault import find_json_fault

        raise ValueError(find_json_fault(raw) or f"not a JSON document: {error}") from None
    return _replace_lone_surrogates(document) if b"\\u" in raw else document


def _replace_lone_surrogates(value: Any) -> Any:
    """Return a value with surrogates that stand alone replaced, so that it can be encoded."""
    kind = type(value)
    if kind is dict:
        return {_replace_lone_surrogates(k): _replace_lone_surrogates(v) for k, v in value.items()}
    if kind is list:
        return [_replace_lone_surrogates(v) for v in value]
    if kind is str and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


_OPTIONS: Final = orjson.OPT_SORT_KEYS
_LINE_SEPARATORS: Final = (b"\xe2\x80\xa8", b"\xe2\x80\xa9")


def dump_json(value: Any) -> bytes:
    """Write a value as JSON the way Benthos does.

    Keys are sorted, HTML is not escaped, bytes become base64, timestamps RFC 3339, `DELETED` and
    `NOTHING` null; floats are written as Go writes them (`15`, not `15.0`).

    Raises:
        ValueError: the value holds something that JSON has no form for.

    Example:
        >>> dump_json({"b": 15.0, "a": b"bytes"})
        b'{"a":"Ynl0ZXM=","b":15}'
    """
    try:
        out = copy_to_size(orjson.dumps(value, _encode_unknown, _OPTIONS))
    except orjson.JSONEncodeError as e:
        return copy_to_size(_escape_line_separators(_dump_unencodable(value, e)))
    return copy_to_size(_respell_as_go(out, value)) if differs_from_go(out) or 0xE2 in out else out


_COPY_BELOW_BYTES: Final = 1 << 14


def copy_to_size(out: bytes) -> bytes:
    """Return what orjson wrote in a block of its size: its own have some thousands of bytes more.

    It writes into a block that is larger, and what is left of that when it is cut to size is of
    no use to the next one: a text of seven bytes takes 4,120.
    """
    return b"%b" % out if len(out) < _COPY_BELOW_BYTES else out


def dump_json_each(values: Sequence[Any]) -> list[bytes]:
    """Write some dozens of values as `dump_json` does, which looks through all of them at once.

    Raises:
        ValueError: one of the values holds something that JSON has no form for.
    """
    try:
        out = [orjson.dumps(value, _encode_unknown, _OPTIONS) for value in values]
    except orjson.JSONEncodeError:
        return list(map(dump_json, values))
    # What orjson writes has no line breaks.
    together = b",\n".join(out)
    if not differs_from_go(together) and 0xE2 not in together:
        # As it is split, each gets a block of its size; see `fitted`.
        return together.split(b",\n") if out else out
    if not has_exponent(together) and 0xE2 not in together:
        spelled = remove_decimal_points(together)
        if spelled is not None:
            return spelled.split(b",\n")
    return list(map(copy_to_size, map(_respell_as_go, out, values)))


def dump_json_texts(texts: Sequence[str]) -> list[bytes]:
    """Write some texts as `dump_json` does.

    Raises:
        ValueError: one of them has no form as JSON.
    """
    try:
        out = orjson.dumps(texts)
    except orjson.JSONEncodeError:
        return list(map(dump_json, texts))
    if 0xE2 in out:
        return list(map(dump_json, texts))
    # Within a text a quote has a backslash before it, so that none looks like what parts two.
    return [b'"%b"' % text for text in out[2:-2].split(b'","')] if texts else []


def _respell_as_go(out: bytes, value: Any) -> bytes:
    """Return what orjson wrote for a value as Go would have written it."""
    if differs_from_go(out):
        spelled = None if has_exponent(out) else remove_decimal_points(out)
        out = _dump_with_go_floats(value) if spelled is None else spelled
    return _escape_line_separators(out)


def _dump_with_go_floats(value: Any) -> bytes:
    try:
        return orjson.dumps(_with_go_floats(value), _encode_unknown_plain, _OPTIONS)
    except orjson.JSONEncodeError as e:
        return _dump_unencodable(value, e)


def _escape_line_separators(out: bytes) -> bytes:
    if 0xE2 in out:
        for mark, escape in zip(_LINE_SEPARATORS, (b"\\u2028", b"\\u2029"), strict=True):
            out = out.replace(mark, escape)
    return out


def _encode_unknown(value: Any) -> Any:
    """Return what stands for a value that orjson does not know.

    A number whose own text ends in `.0` gets a blank in front: `remove_decimal_points` leaves it
    alone.
    """
    if type(value) is Number and value.text.endswith(".0"):
        return orjson.Fragment(" " + value.text)
    return _encode_unknown_plain(value)


def _encode_unknown_plain(value: Any) -> Any:
    kind = type(value)
    if kind is Number:
        return orjson.Fragment(value.text)
    if kind is bytes:
        import base64

        return base64.b64encode(value).decode()
    if kind is Timestamp:
        return str(value)
    if value is DELETED or value is NOTHING:
        return None
    raise TypeError(f"a value of type {kind.__name__} has no JSON form")


_NO_FLOATS: Final = frozenset((str, int, bool, type(None)))


def _with_go_floats(value: Any) -> Any:
    """Return the value with each plain float replaced by one that carries Go's spelling."""
    kind = type(value)
    if kind is float:
        # A whole number prints as Go has it when it is an integer; -0.0 is the one that would not.
        if -1e15 < value < 1e15 and value and value.is_integer():
            return int(value)
        return as_go_float(value)
    if kind is dict:
        return {k: v if type(v) in _NO_FLOATS else _with_go_floats(v) for k, v in value.items()}
    if kind is list:
        return [v if type(v) in _NO_FLOATS else _with_go_floats(v) for v in value]
    return value


def _dump_unencodable(value: Any, error: Exception) -> bytes:
    """Write what orjson refuses: integers beyond 64 bits, and texts with bytes that are no UTF-8.

    Such bytes stand in a text as lone surrogates; like Go, each is written as U+FFFD. It refuses
    deep values as well.
    """
    if "Recursion" in str(error):
        from streamer.core.json.deep_json import dump_deep

        return dump_deep(value, dump_json)
    try:
        return orjson.dumps(_without_surrogates(value), _encode_unknown_plain, _OPTIONS)
    except (orjson.JSONEncodeError, RecursionError):
        raise ValueError(str(error)) from None


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _without_surrogates(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {_SURROGATE.sub("\ufffd", k): _without_surrogates(v) for k, v in value.items()}
    if kind is list:
        return [_without_surrogates(v) for v in value]
    if kind is str and _SURROGATE.search(value):
        shown = json.dumps(value, ensure_ascii=False)
        return orjson.Fragment(_SURROGATE.sub(r"\\ufffd", shown))
    if kind is int and not INT64_MIN <= value <= UINT64_MAX:
        return orjson.Fragment(str(value))
    return as_go_float(value) if kind is float else value


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
