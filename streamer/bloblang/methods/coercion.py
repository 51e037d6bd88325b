"""Methods that turn a value into one of another type."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import to_bool, to_float, to_int, to_timestamp, to_uint
from streamer.bloblang.golib.goquote import quote
from streamer.bloblang.golib.text import to_bytes, to_text
from streamer.core.timestamps import Timestamp

_CATEGORY = "Type Coercion"
_NUMBER_CATEGORY = "Number Manipulation"


@declare(
    "string",
    _CATEGORY,
    examples=(
        Example("root.id = this.id.string()", '{"id":7}', '{"id":"7"}'),
        Example("root.raw = this.string()", '{"tags":["a"]}', '{"raw":"{\\"tags\\":[\\"a\\"]}"}'),
    ),
)
def string(value: Any) -> str:
    """The value as text: arrays and objects as JSON."""
    return to_text(value)


@declare(
    "bytes",
    _CATEGORY,
    examples=(Example("root.size = this.name.bytes().length()", '{"name":"Zoë"}', '{"size":4}'),),
)
def bytes_(value: Any) -> bytes:
    """The value as bytes."""
    return to_bytes(value)


@declare(
    "bool",
    _CATEGORY,
    Param("default", "bool", default=None),
    examples=(
        Example("root.active = this.active.bool()", '{"active":"true"}', '{"active":true}'),
        Example(
            "root.active = this.active.bool(false)", '{"active":"unknown"}', '{"active":false}'
        ),
    ),
)
def bool_(value: Any, default: None) -> bool:
    """The value as a boolean; the argument, if given, for other values."""
    return to_bool(value)


@declare(
    "number",
    _CATEGORY,
    Param("default", "float", default=None),
    examples=(
        Example("root.age = this.age.number()", '{"age":"36"}', '{"age":36}'),
        Example("root.age = this.age.number(0)", '{"age":"n/a"}', '{"age":0}'),
    ),
)
def number(value: Any, default: None) -> float:
    """The value as a number; the argument, if given, for other values."""
    return to_float(value)


@declare(
    "timestamp",
    _CATEGORY,
    Param("default", "timestamp", default=None),
    examples=(
        Example(
            "root.at = this.at.timestamp()", '{"at":1763719200}', '{"at":"2025-11-21T10:00:00Z"}'
        ),
    ),
)
def timestamp(value: Any, default: None) -> Timestamp:
    """The value as a timestamp; the argument, if given, for other values."""
    return to_timestamp(value)


@declare(
    "array",
    _CATEGORY,
    examples=(
        Example("root.tags = this.tags.array()", '{"tags":"urgent"}', '{"tags":["urgent"]}'),
        Example(
            "root.tags = this.tags.array()", '{"tags":["urgent","eu"]}', '{"tags":["urgent","eu"]}'
        ),
    ),
)
def array(value: Any) -> list[Any]:
    """The value as an array of itself; an array as it is."""
    return value if type(value) is list else [value]


def _declare_integer(name: str, bits: int, signed: bool) -> Callable[[Any], int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    article = "an" if bits == 8 else "a"
    kind = f"{article} {bits}-bit {'signed' if signed else 'unsigned'} integer"

    @declare(
        name,
        _NUMBER_CATEGORY,
        examples=(Example(f"root = this.a.{name}()", '{"a":"0x1f"}', "31"),),
        own_errors=True,
        summary=f"The value, or a text read as one, as {kind}.",
    )
    def convert(value: Any) -> int:
        number = to_int(value) if signed else to_uint(value)
        if number > high:
            raise QueryError(f"value is too large to be cast as {kind}")
        if number < low:
            raise QueryError(f"value is too small to be cast as {kind}")
        return number

    return convert


int64 = _declare_integer("int64", 64, True)
int32 = _declare_integer("int32", 32, True)
int16 = _declare_integer("int16", 16, True)
int8 = _declare_integer("int8", 8, True)
uint64 = _declare_integer("uint64", 64, False)
uint32 = _declare_integer("uint32", 32, False)
uint16 = _declare_integer("uint16", 16, False)
uint8 = _declare_integer("uint8", 8, False)


@declare(
    "float64",
    _NUMBER_CATEGORY,
    examples=(Example("root = this.a.float64()", '{"a":"1.5"}', "1.5"),),
    own_errors=True,
)
def float64(value: Any) -> float:
    """The value, or a text read as one, as a 64-bit float."""
    return to_float(value)


@declare(
    "float32",
    _NUMBER_CATEGORY,
    examples=(Example("root = this.a.float32()", '{"a":"0.1"}', "0.1"),),
    own_errors=True,
)
def float32(value: Any) -> float:
    """The value, or a text read as one, rounded to a 32-bit float."""
    from streamer.core.value import Number, format_json_float

    text = _number_text(value)
    number = to_float(value)
    packed = struct.pack("f", number if text is None else _nearest_double(text, number))
    rounded: float = struct.unpack("f", packed)[0]
    if not math.isfinite(rounded):
        if text is not None and math.isfinite(number):
            raise QueryError(f"strconv.ParseFloat: parsing {quote(text)}: value out of range")
        return rounded
    for digits in range(6, 10):
        candidate = f"{rounded:.{digits}g}"
        if struct.pack("f", float(candidate)) == packed:
            return Number(format_json_float(float(candidate)), rounded)
    return rounded


def _number_text(value: Any) -> str | None:
    """Return the text that a number is read from: its own, or that of a document's number."""
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    return value if type(value) is str else getattr(value, "text", None)


def _nearest_double(text: str, number: float) -> float:
    """Return a double that becomes the 32-bit float nearest to a text.

    A double halfway between two of them has lost on which side of it the text is.
    """
    below, above = (math.nextafter(number, end) for end in (-math.inf, math.inf))
    if struct.pack("f", below) == struct.pack("f", above):
        return number
    try:
        exact = Fraction(text.replace("_", ""))
    except (ValueError, ZeroDivisionError):  # hexadecimal, infinite or not a number
        return number
    return below if exact < number else above if exact > number else number
