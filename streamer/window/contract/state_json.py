"""Plain values as JSON, also those that strict JSON lacks: what is kept must be kept as it is.

They are texts with lone surrogates, which is what bytes that are no UTF-8 become, and integers
beyond 64 bits, such as the bounds of windows at the end of time.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

_LENIENT_MARK: Final = b" "
"""It tells what strict JSON lacks: integers beyond 64 bits would be read as floats without it."""


def dump_state_json(value: Any) -> bytes:
    """Write a value made of lists, maps, texts, numbers, booleans and null."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _LENIENT_MARK + json.dumps(value, separators=(",", ":")).encode()


def load_state_json(data: bytes) -> Any:
    """Read what `dump_state_json` wrote."""
    if data.startswith(_LENIENT_MARK):
        return json.loads(data)
    try:
        return orjson.loads(data)
    except ValueError:  # a checkpoint may still hold odd values that nothing tells
        return json.loads(data)
