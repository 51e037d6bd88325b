"""JSON of values that are nested deeper than orjson goes, 254 levels: written without recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Written(bytes):
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
        if kind is _Written:
            out.append(item)
        elif kind is dict:
            left += reversed(_object(item, scalar))
        elif kind is list:
            left += reversed(_array(item))
        else:
            out.append(scalar(item))
    return b"".join(out)


def _object(value: dict[str, Any], scalar: Callable[[Any], bytes]) -> list[Any]:
    parts: list[Any] = []
    for key in sorted(value):
        parts += [_Written((b"," if parts else b"{") + scalar(key) + b":"), value[key]]
    return [*parts, _Written(b"}" if parts else b"{}")]


def _array(value: list[Any]) -> list[Any]:
    parts: list[Any] = []
    for item in value:
        parts += [_Written(b"," if parts else b"["), item]
    return [*parts, _Written(b"]" if parts else b"[]")]
