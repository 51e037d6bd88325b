"""A call's argument brought to the type of its parameter, or refused, as Benthos does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.runtime.operations import NUMBERS, truncate, truth
from streamer.timestamps import Timestamp
from streamer.value import Number, UInt, json_float, type_name


def _refuse(expected: str, value: Any) -> ArgumentError:
    return ArgumentError(f"wrong argument type, expected {expected}, got {type_name(value)}")


def string(value: Any) -> str:
    """Return a text; bytes count as text."""
    if type(value) is str:
        return value
    if type(value) is bytes:
        return value.decode("utf-8", "surrogateescape")
    raise _refuse("string", value)


def integer(value: Any) -> int:
    """Return a number as int64, its fraction cut off."""
    if type(value) in NUMBERS:
        return truncate(value)
    raise ArgumentError(f"expected number value, got {type_name(value)}{_shown(value)}")


def number(value: Any) -> float:
    """Return a number as float64."""
    if type(value) in NUMBERS:
        return float(value)
    raise ArgumentError(f"expected number value, got {type_name(value)}{_shown(value)}")


def boolean(value: Any) -> bool:
    """Return a boolean; a number counts as whether it is not 0."""
    result = truth(value)
    if result is None:
        raise ArgumentError(f"expected bool value, got {type_name(value)}{_shown(value)}")
    return result


def _shown(value: Any) -> str:
    if type(value) is str:
        return f' ("{value}")'
    return f" ({str(value).lower()})" if type(value) is bool else ""


def array(value: Any) -> list[Any]:
    """Return an array."""
    if type(value) is list:
        return value
    raise _refuse("array", value)


def mapping(value: Any) -> dict[str, Any]:
    """Return an object."""
    if type(value) is dict:
        return value
    raise _refuse("object", value)


def timestamp(value: Any) -> Timestamp:
    """Return a timestamp: Unix seconds and RFC 3339 texts are read."""
    from streamer.bloblang.runtime.convert import to_timestamp

    try:
        return to_timestamp(value)
    except QueryError as e:
        raise ArgumentError(str(e)) from None


def anything(value: Any) -> Any:
    """Return the value as it is."""
    return value


def spelled(value: Any) -> Any:
    """Return a value with every number in it as a number that keeps its text."""
    if type(value) is int or type(value) is UInt:
        return Number(str(value))
    if type(value) is float:
        return Number(json_float(value), value)
    if type(value) is list:
        return [spelled(item) for item in value]
    if type(value) is dict:
        return {key: spelled(item) for key, item in value.items()}
    return value


CONVERTERS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": string,
    "integer": integer,
    "float": number,
    "bool": boolean,
    "array": array,
    "object": mapping,
    "timestamp": timestamp,
    "any": anything,
    "spelled": spelled,
}
