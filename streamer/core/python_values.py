"""Values between messages and functions: plain ones on the way in, checked on the way out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from streamer.core.timestamps import Timestamp, format_rfc3339
from streamer.core.value import INT64_MAX, INT64_MIN, UINT64_MAX, Number, UInt

_MAX_DEPTH: Final = 200
_PLAIN: Final = frozenset({str, bool, type(None), bytes, Number, UInt})
_NS_PER_US: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1)


class NoValueError(ValueError):
    """A result has no form as a message; the text says which value, and where."""


def copy_plain(value: Any) -> Any:
    """Return a copy of a value of a message, which a function may change; instants are texts."""
    kind = type(value)
    if kind is dict:
        return {name: copy_plain(one) for name, one in value.items()}
    if kind is list:
        return [copy_plain(one) for one in value]
    if kind is Timestamp:
        return str(value)
    return value


def to_message_value(value: Any, path: str = "", depth: int = 0) -> Any:
    """Return a result of a function as a value of a message; containers are copied.

    Beside what JSON has: tuples and sets, times (RFC 3339, ISO 8601; durations as nanoseconds),
    decimals, UUIDs, enumerations, and numpy's scalars and arrays. No number, and an endless one, is
    null.

    Args:
        value: the result.
        path: where it is in the result, for errors.
        depth: how deep that is.

    Raises:
        NoValueError: it has no form.

    Example:
        >>> to_message_value({"day": date(2026, 1, 2), "n": (1, float("nan"))})
        {'day': '2026-01-02', 'n': [1, None]}
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return value if INT64_MIN <= value <= INT64_MAX else _large_int(value, path)
    if kind is float:
        return value if math.isfinite(value) else None
    if depth > _MAX_DEPTH:
        raise NoValueError(f"{path[:80] or 'the result'} is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        return _read_object(value, path, depth)
    if isinstance(value, list | tuple | set | frozenset):
        return [to_message_value(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(value)]
    return _read_other(value, path, depth)


def _read_object(value: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
    made = {}
    for name, one in value.items():
        if type(name) is not str:
            if not isinstance(name, str | int) and not hasattr(name, "item"):
                raise NoValueError(
                    f"{path or 'the result'} has a key of the type {type(name).__name__}; keys of "
                    "objects are texts"
                )
            name = str(name)
        made[name] = to_message_value(one, f"{path}.{name}" if path else name, depth + 1)
    return made


def _large_int(value: int, path: str) -> UInt:
    if 0 < value <= UINT64_MAX:
        return UInt(value)
    raise NoValueError(f"{path or 'the result'} is an integer beyond 64 bits; make it a float")


def _read_other(value: Any, path: str, depth: int) -> Any:
    if isinstance(value, Enum):
        return to_message_value(value.value, path, depth + 1)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, int):
        return to_message_value(int(value), path, depth)
    if isinstance(value, Decimal):
        return Number(format(value, "f"), float(value)) if value.is_finite() else None
    if isinstance(value, datetime):
        if value != value:
            return None  # pandas' missing time
        if value.tzinfo is not None:
            value = (value - value.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]
        return format_rfc3339((value - _EPOCH) // timedelta(microseconds=1) * _NS_PER_US)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1) * _NS_PER_US
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return _read_object(dict(value), path, depth)
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        plain = value.tolist()  # numpy's arrays and scalars, and columns of pandas
        if type(plain) is not type(value):
            return to_message_value(plain, path, depth + 1)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    name = type(value).__name__
    if name == "NAType":
        return None  # pandas' missing value
    raise NoValueError(
        f"{path or 'the result'} is of the type {name}, for which messages have no form"
    )
