"""Metadata as bytes: JSON, with marked spellings for the Bloblang values that JSON lacks."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from streamer.errors import StreamerError
from streamer.message import NO_META, Failure
from streamer.timestamps import Timestamp
from streamer.value import Number, UInt, fitted

# A map with this key alone is a marked value: [what, ...]. A user's map with it is marked itself.
_MARK: Final = "\u0000"
# The mark of a failed message; a user's key cannot be mistaken for it, since "\0" is escaped too.
_ERROR: Final = "\u0000error"
# How a message spells the key of its window, where equal keys are spelt otherwise.
_KEY: Final = "\u0000key"
_KEY_INSIDE: Final = b"\\u0000key"


def encode_meta(meta: Mapping[str, Any], error: str | None = None) -> bytes:
    """Write metadata, and the error that marks the message.

    Returns:
        Equal bytes for equal metadata in equal order; nothing for none.

    Raises:
        StreamerError: a value is none of Bloblang's.
    """
    if not meta and error is None:
        return b""
    if error is None and all(type(v) is str and k[:1] != _MARK for k, v in meta.items()):
        with suppress(TypeError):
            return fitted(orjson.dumps(meta))
    plain = {(_MARK + k if k.startswith(_MARK) else k): _plain(v) for k, v in meta.items()}
    if error is not None:
        source = [error.name, error.label, error.path] if isinstance(error, Failure) else []
        plain[_ERROR] = [str(error), *source]
    try:
        return fitted(orjson.dumps(plain))
    except TypeError:  # text with lone surrogates, which is what bytes that are no UTF-8 become
        return json.dumps(plain, separators=(",", ":")).encode()


def decode_meta(data: bytes) -> tuple[Mapping[str, Any], str | None]:
    """Read what `encode_meta` wrote: metadata and error."""
    if not data:
        return NO_META, None
    found = _loaded(data)
    error = found.pop(_ERROR, None)
    found.pop(_KEY, None)
    # A checkpoint may still hold marks that are but a text.
    if isinstance(error, list):
        error = Failure(*error) if len(error) > 1 else error[0]
    return {k.removeprefix(_MARK): _value(v) for k, v in found.items()}, error


def with_spelling(data: bytes, key: bytes) -> bytes:
    """Add to what `encode_meta` wrote how the message spells its window's key, which is JSON."""
    found = _loaded(data) if data else {}
    return json.dumps({**found, _KEY: key.decode()}, separators=(",", ":")).encode()


def spelling_of(data: bytes) -> bytes | None:
    """Return how the message spells its window's key; None where it does as all others."""
    if _KEY_INSIDE not in data:
        return None
    found = _loaded(data).get(_KEY)
    return None if found is None else str(found).encode()


def _loaded(data: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = orjson.loads(data)
    except ValueError:
        found = json.loads(data)
    return found


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**64 else {_MARK: ["int", str(value)]}
    if kind is UInt:
        return {_MARK: ["uint", str(value)]}
    if kind is float:
        return value if math.isfinite(value) else {_MARK: ["float", repr(value)]}
    if kind is bytes:
        return {_MARK: ["bytes", base64.b64encode(value).decode()]}
    if kind is list:
        return [_plain(item) for item in value]
    if kind is dict:
        if _MARK in value:
            return {_MARK: ["map", [[k, _plain(v)] for k, v in value.items()]]}
        return {k: _plain(v) for k, v in value.items()}
    if kind is Number:
        number = float(value)
        # That of `float32` is not what its text says, and infinity has no JSON.
        spelt = [] if number == float(value.text) else [number]
        return {_MARK: ["number", value.text, *spelt]}
    if kind is Timestamp:
        return {_MARK: ["time", value.ns, value.offset, value.zone, value.location]}
    raise StreamerError(f"metadata holds a {kind.__name__}, which cannot be kept in a window")


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if _MARK not in plain:
        return {k: _value(v) for k, v in plain.items()}
    what, *found = plain[_MARK]
    if what == "int":
        return int(found[0])
    if what == "uint":
        return UInt(found[0])
    if what == "float":
        return float(found[0])
    if what == "bytes":
        return base64.b64decode(found[0])
    if what == "map":
        return {k: _value(v) for k, v in found[0]}
    if what == "number":
        return Number(*found)
    return Timestamp(*found)
