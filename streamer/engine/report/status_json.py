"""The status of a shard as JSON, whatever times its messages have."""

from __future__ import annotations

from typing import Any

import orjson

from streamer.core.value import INT64_MAX, INT64_MIN


def encode_status(status: dict[str, Any]) -> bytes:
    """Return a status as JSON, with times as 64-bit integers.

    A window may begin before the least time that there is, 1677-09-21T00:12:43.145224192Z, since
    the time of a message may be that. JSON's numbers here end there, so it is shown to begin then.
    """
    try:
        return orjson.dumps(status)
    except TypeError:
        return orjson.dumps(_clamp(status))


def _clamp(value: Any) -> Any:
    """Return a value with all integers in it moved into the range of 64 bits."""
    if isinstance(value, dict):
        return {name: _clamp(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clamp(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return max(INT64_MIN, min(value, INT64_MAX))
    return value
