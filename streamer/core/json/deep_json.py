"""JSON of values that are nested deeper than orjson goes, 254 levels: written without recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Fragment(bytes):
    """JSON that stands between values still to be written."""


def dump_deep(value: Any, scalar: Callable[[Any], bytes]) -> bytes:
    """Write a value as JSON with sorted keys, however deep it is.

    Args:
        value: any value.
        scalar: writes what is neither array nor object.
    """
    out: list[bytes] = []
    left: list[Any] = [value]
    while left:
        item = left.pop()
        kind = type(item)
        if kind is _Fragment:
            out.append(item)
        elif kind is dict:
            left += reversed(_object_parts(item, scalar))
        elif kind is list:
            left += reversed(_array_parts(item))
        else:
            out.append(scalar(item))
    return b"".join(out)


def _object_parts(value: dict[str, Any], scalar: Callable[[Any], bytes]) -> list[Any]:
    parts: list[Any] = []
    for key in sorted(value):
        parts += [_Fragment((b"," if parts else b"{") + scalar(key) + b":"), value[key]]
    return [*parts, _Fragment(b"}" if parts else b"{}")]


def _array_parts(value: list[Any]) -> list[Any]:
    parts: list[Any] = []
    for item in value:
        parts += [_Fragment(b"," if parts else b"["), item]
    return [*parts, _Fragment(b"]" if parts else b"[]")]
