"""A call's argument brought to the type of its parameter, or refused, as Benthos does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.golib.operations import NUMBER_TYPES, truncate, truth_value
from streamer.core.timestamps import Timestamp
from streamer.core.value import Number, UInt, format_json_float, type_name


def _type_error(expected: str, value: Any) -> ArgumentError:
    return ArgumentError(f"wrong argument type, expected {expected}, got {type_name(value)}")


def as_string(value: Any) -> str:
    """Return a text; bytes count as text."""
    if type(value) is str:
        return value
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    raise _type_error("string", value)


def as_integer(value: Any) -> int:
    """Return a number as int64, its fraction cut off."""
    if type(value) in NUMBER_TYPES:
        return truncate(value)
    raise ArgumentError(f"expected number value, got {type_name(value)}{_format_value(value)}")


def as_number(value: Any) -> float:
    """Return a number as float64."""
    if type(value) in NUMBER_TYPES:
        return float(value)
    raise ArgumentError(f"expected number value, got {type_name(value)}{_format_value(value)}")


def as_boolean(value: Any) -> bool:
    """Return a boolean; a number counts as whether it is not 0."""
    result = truth_value(value)
    if result is None:
        raise ArgumentError(f"expected bool value, got {type_name(value)}{_format_value(value)}")
    return result


def _format_value(value: Any) -> str:
    if type(value) is str:
        return f' ("{value}")'
    return f" ({str(value).lower()})" if type(value) is bool else ""


def as_array(value: Any) -> list[Any]:
    """Return an array."""
    if type(value) is list:
        return value
    raise _type_error("array", value)


def as_object(value: Any) -> dict[str, Any]:
    """Return an object."""
    if type(value) is dict:
        return value
    raise _type_error("object", value)


def as_timestamp(value: Any) -> Timestamp:
    """Return a timestamp: Unix seconds and RFC 3339 texts are read."""
    from streamer.bloblang.golib.convert import to_timestamp

    try:
        return to_timestamp(value)
    except QueryError as e:
        raise ArgumentError(str(e)) from None


def as_any(value: Any) -> Any:
    """Return the value as it is."""
    return value


def as_number_text(value: Any) -> Any:
    """Return a value with every number in it as a number that keeps its text."""
    if type(value) is int or type(value) is UInt:
        return Number(str(value))
    if type(value) is float:
        return Number(format_json_float(value), value)
    if type(value) is list:
        return [as_number_text(item) for item in value]
    if type(value) is dict:
        return {key: as_number_text(item) for key, item in value.items()}
    return value


CONVERTERS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": as_string,
    "integer": as_integer,
    "float": as_number,
    "bool": as_boolean,
    "array": as_array,
    "object": as_object,
    "timestamp": as_timestamp,
    "any": as_any,
    "spelled": as_number_text,
}
