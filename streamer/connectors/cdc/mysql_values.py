"""Values of MySQL's rows as JSON has them; they follow Redpanda Connect.

Numbers and JSON are values, decimals texts, dates and times RFC 3339 in UTC, binary values base64.
"""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from streamer.core.json.parse import parse_json

_DATES: Final = frozenset({"date", "datetime", "timestamp"})
_MAX_DIGITS: Final = 9
_MIN_DIGITS: Final = 6


def load_value(value: Any) -> Any:
    """Return a value, of a row that was read in any way, as JSON has it."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        clock = value.strftime("%H:%M:%S")
        fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
        return f"{value.date().isoformat()}T{clock}{fraction}Z"
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00Z"
    if isinstance(value, timedelta):
        return _format_duration(value)
    if isinstance(value, dict):
        return {_as_text(name): load_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [load_value(item) for item in value]
    return value


def load_document(value: Any) -> Any:
    """Return a JSON document of the binary log, whose texts are bytes."""
    if isinstance(value, bytes):
        return _as_text(value)
    if isinstance(value, dict):
        return {_as_text(name): load_document(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [load_document(item) for item in value]
    return load_value(value)


def load_column(kind: str, value: Any) -> Any:
    """Return a value of a query's row.

    Args:
        kind: the type of its column, by the database's name: `bigint`, `json` and so on.
        value: as PyMySQL has it.
    """
    if value is None:
        return None
    if kind == "bit" and isinstance(value, bytes):
        return int.from_bytes(value)
    if kind == "set":
        return value.split(",") if value else []
    if kind == "float":
        return shorten_float(value)
    if kind in _DATES and isinstance(value, str):
        return None  # a date that there is not, such as 0000-00-00
    if kind == "json" and isinstance(value, str | bytes):
        try:
            return parse_json(value.encode() if isinstance(value, str) else value)
        except ValueError:
            return value
    return load_value(value)


def shorten_float(value: float) -> float:
    """Return the shortest number that is the same with four bytes."""
    packed = struct.pack("<f", value)
    for digits in range(_MIN_DIGITS, _MAX_DIGITS + 1):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<f", short) == packed:
            return short
    return value


def _format_duration(value: timedelta) -> str:
    """Return a `TIME`, which may be negative and longer than a day."""
    sign, value = ("-", -value) if value < timedelta() else ("", value)
    seconds = value.days * 86_400 + value.seconds
    fraction = f".{value.microseconds:06}".rstrip("0") if value.microseconds else ""
    hours, rest = divmod(seconds, 3600)
    return f"{sign}{hours:02}:{rest // 60:02}:{rest % 60:02}{fraction}"


def _as_text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
