"""Metadata as bytes: JSON, with marked spellings for the Bloblang values that JSON lacks."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from streamer.core.errors import StreamerError
from streamer.core.json.dump import copy_to_size
from streamer.core.message import NO_META, Failure
from streamer.core.timestamps import Timestamp
from streamer.core.value import Number, UInt

# A map with this key alone is a marked value: [what, ...]. A user's map with it is marked itself.
_VALUE_MARK: Final = "\u0000"
# The mark of a failed message; a user's key cannot be mistaken for it, since "\0" is escaped too.
_ERROR_KEY: Final = "\u0000error"
# How a message spells the key of its window, where equal keys are spelt otherwise.
_SPELLING_KEY: Final = "\u0000key"
_SPELLING_KEY_JSON: Final = b"\\u0000key"
# The gap that a message brings to its session, ns.
_GAP_KEY: Final = "\u0000gap"
_GAP_KEY_JSON: Final = b"\\u0000gap"
# The conditions of its window that hold for a message, as the sum of their bits.
_CONDITIONS_KEY: Final = "\u0000when"
_CONDITIONS_KEY_JSON: Final = b"\\u0000when"

BEGINS: Final = 1
"""The bit of the condition `begin_when`."""
EMITS: Final = 2
"""The bit of the condition `emit_when`."""


def encode_meta(meta: Mapping[str, Any], error: str | None = None) -> bytes:
    """Write metadata, and the error that marks the message.

    Returns:
        Equal bytes for equal metadata in equal order; nothing for none.

    Raises:
        StreamerError: a value is none of Bloblang's.
    """
    if not meta and error is None:
        return b""
    if error is None and all(type(v) is str and k[:1] != _VALUE_MARK for k, v in meta.items()):
        with suppress(TypeError):
            return copy_to_size(orjson.dumps(meta))
    plain = {
        (_VALUE_MARK + k if k.startswith(_VALUE_MARK) else k): _to_json_value(v)
        for k, v in meta.items()
    }
    if error is not None:
        source = [error.name, error.label, error.path] if isinstance(error, Failure) else []
        plain[_ERROR_KEY] = [str(error), *source]
    try:
        return copy_to_size(orjson.dumps(plain))
    except TypeError:  # text with lone surrogates, which is what bytes that are no UTF-8 become
        return json.dumps(plain, separators=(",", ":")).encode()


def decode_meta(data: bytes) -> tuple[Mapping[str, Any], str | None]:
    """Read what `encode_meta` wrote: metadata and error."""
    if not data:
        return NO_META, None
    entries = _parse_entries(data)
    error = entries.pop(_ERROR_KEY, None)
    entries.pop(_SPELLING_KEY, None)
    entries.pop(_GAP_KEY, None)
    entries.pop(_CONDITIONS_KEY, None)
    # A checkpoint may still hold marks that are but a text.
    if isinstance(error, list):
        error = Failure(*error) if len(error) > 1 else error[0]
    return {k.removeprefix(_VALUE_MARK): _from_json_value(v) for k, v in entries.items()}, error


def add_key_spelling(data: bytes, key: bytes) -> bytes:
    """Add to what `encode_meta` wrote how the message spells its window's key, which is JSON."""
    entries = _parse_entries(data) if data else {}
    return json.dumps({**entries, _SPELLING_KEY: key.decode()}, separators=(",", ":")).encode()


def add_gap(data: bytes, gap: int) -> bytes:
    """Add to what `encode_meta` wrote the gap that the message brings to its session, ns."""
    return _add_number(data, _GAP_KEY, _GAP_KEY_JSON, gap)


def read_gap(data: bytes) -> int | None:
    """Return the gap that a message brings to its session, ns; None where it brings none."""
    return _read_number(data, _GAP_KEY, _GAP_KEY_JSON)


def add_conditions(data: bytes, conditions: int) -> bytes:
    """Add to what `encode_meta` wrote the bits of the conditions that hold for the message."""
    return _add_number(data, _CONDITIONS_KEY, _CONDITIONS_KEY_JSON, conditions)


def read_conditions(data: bytes) -> int:
    """Return the bits of the conditions that hold for a message; 0 where none does."""
    return _read_number(data, _CONDITIONS_KEY, _CONDITIONS_KEY_JSON) or 0


def _add_number(data: bytes, name: str, name_json: bytes, number: int) -> bytes:
    if not data:
        return b'{"%b":%d}' % (name_json, number)
    return json.dumps({**_parse_entries(data), name: number}, separators=(",", ":")).encode()


def _read_number(data: bytes, name: str, name_json: bytes) -> int | None:
    if name_json not in data:
        return None
    number = _parse_entries(data).get(name)
    return None if number is None else int(number)


def read_key_spelling(data: bytes) -> bytes | None:
    """Return how the message spells its window's key; None where it does as all others."""
    if _SPELLING_KEY_JSON not in data:
        return None
    spelling = _parse_entries(data).get(_SPELLING_KEY)
    return None if spelling is None else str(spelling).encode()


def _parse_entries(data: bytes) -> dict[str, Any]:
    try:
        entries: dict[str, Any] = orjson.loads(data)
    except ValueError:
        entries = json.loads(data)
    return entries


def _to_json_value(value: Any) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**64 else {_VALUE_MARK: ["int", str(value)]}
    if kind is UInt:
        return {_VALUE_MARK: ["uint", str(value)]}
    if kind is float:
        return value if math.isfinite(value) else {_VALUE_MARK: ["float", repr(value)]}
    if kind is bytes:
        return {_VALUE_MARK: ["bytes", base64.b64encode(value).decode()]}
    if kind is list:
        return [_to_json_value(item) for item in value]
    if kind is dict:
        if _VALUE_MARK in value:
            return {_VALUE_MARK: ["map", [[k, _to_json_value(v)] for k, v in value.items()]]}
        return {k: _to_json_value(v) for k, v in value.items()}
    if kind is Number:
        number = float(value)
        # That of `float32` is not what its text says, and infinity has no JSON.
        spelt = [] if number == float(value.text) else [number]
        return {_VALUE_MARK: ["number", value.text, *spelt]}
    if kind is Timestamp:
        return {_VALUE_MARK: ["time", value.ns, value.offset, value.zone, value.location]}
    raise StreamerError(f"metadata holds a {kind.__name__}, which cannot be kept in a window")


def _from_json_value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_from_json_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if _VALUE_MARK not in plain:
        return {k: _from_json_value(v) for k, v in plain.items()}
    what, *args = plain[_VALUE_MARK]
    if what == "int":
        return int(args[0])
    if what == "uint":
        return UInt(args[0])
    if what == "float":
        return float(args[0])
    if what == "bytes":
        return base64.b64decode(args[0])
    if what == "map":
        return {k: _from_json_value(v) for k, v in args[0]}
    if what == "number":
        return Number(*args)
    return Timestamp(*args)
