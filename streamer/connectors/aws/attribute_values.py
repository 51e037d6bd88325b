"""Values of DynamoDB: attributes, made of documents."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
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


def plain_value(attribute: Mapping[str, Any]) -> Any:
    """Return an attribute without its type.

    Numbers stay texts, since they may have more digits than a JSON number.

    Example:
        >>> plain_value({"M": {"id": {"N": "7"}, "tags": {"SS": ["a"]}, "no": {"NULL": True}}})
        {'id': '7', 'tags': ['a'], 'no': None}
    """
    [(kind, value)] = attribute.items()
    if kind == "M":
        return plain_item(value)
    if kind == "L":
        return [plain_value(one) for one in value]
    return None if kind == "NULL" else value


def plain_item(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the attributes of an item without their types."""
    return {name: plain_value(one) for name, one in item.items()}


def save_key(key: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the attributes of a primary key with their types as a JSON value, bytes as Base64."""
    return {
        name: {
            kind: b64encode(value).decode() if kind == "B" else value for kind, value in one.items()
        }
        for name, one in key.items()
    }


def load_key(saved: Mapping[str, Mapping[str, str]]) -> dict[str, Attribute]:
    """Return a primary key that `save_key` has made a JSON value."""
    return {
        name: {kind: b64decode(text) if kind == "B" else text for kind, text in one.items()}
        for name, one in saved.items()
    }
