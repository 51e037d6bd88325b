"""The values of an SQL answer as those that JSON has."""

from __future__ import annotations

import base64
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def to_json_value(value: Any) -> Any:
    """Return a value as JSON has it: times as RFC 3339 in UTC, bytes as base64.

    Numbers that JSON does not have are texts: `nan`, `inf`; durations are seconds.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        text = value.isoformat()
        return text if value.tzinfo is not None else f"{text}Z"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, list | tuple | set):
        return [to_json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(name): to_json_value(item) for name, item in value.items()}
    return str(value)
