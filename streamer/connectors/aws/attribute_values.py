"""Values of DynamoDB: attributes, made of documents."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from streamer.core.errors import MessageError

Attribute = dict[str, Any]
"""A value as DynamoDB has it: its type, such as `S`, and the value."""

_MAX_DEPTH: Final = 32
"""Levels of lists and maps that DynamoDB takes."""


def make_attribute(value: Any, depth: int = 0) -> Attribute:
    """Return a value of a document as an attribute.

    Raises:
        MessageError: it has more levels than DynamoDB takes.
    """
    if depth > _MAX_DEPTH:
        raise MessageError(f"the document has more than {_MAX_DEPTH} levels")
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float):
        return {"N": number_text(value)}
    if isinstance(value, bytes):
        return {"B": value}
    if isinstance(value, dict):
        return {"M": {key: make_attribute(one, depth + 1) for key, one in value.items()}}
    if isinstance(value, list):
        return {"L": [make_attribute(one, depth + 1) for one in value]}
    return {"S": str(value)}


def number_text(number: float) -> str:
    """Return a number without an exponent."""
    return format(Decimal(repr(number)), "f") if isinstance(number, float) else str(number)


def read_attribute(value: Any, depth: int = 0) -> Attribute:
    """Return an attribute of the form `{"S": "text"}`, checked.

    Raises:
        MessageError: it is none.
    """
    if not isinstance(value, dict) or len(value) != 1 or depth > _MAX_DEPTH:
        raise MessageError('expected an object with a type and a value, such as {"S": "text"}')
    [(kind, given)] = value.items()
    if kind == "L" and isinstance(given, list):
        return {kind: [read_attribute(one, depth + 1) for one in given]}
    if kind == "M" and isinstance(given, dict):
        return {kind: {key: read_attribute(one, depth + 1) for key, one in given.items()}}
    if kind in ("SS", "NS", "BS") and isinstance(given, list):
        return {kind: [_scalar(kind[0], one) for one in given]}
    return {kind: _scalar(kind, given)}


def _scalar(kind: str, value: Any) -> Any:
    if kind == "S" and isinstance(value, str):
        return value
    if kind == "N" and isinstance(value, str):
        return value
    if kind == "N" and isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    if kind == "B" and isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    if kind in ("BOOL", "NULL") and isinstance(value, bool):
        return value
    raise MessageError(f"the attribute of type {kind!r} has a value that does not fit it")
