"""Metadata written by a mapping; it is shared between messages, so a change makes a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.text import go_type, metadata_text
from streamer.core.value import DELETED, NOTHING


def put_value(meta: Mapping[str, Any], key: str, value: Any) -> Mapping[str, Any]:
    """Return the metadata with a key set, or without it when the value is `DELETED`."""
    if value is NOTHING:
        return meta
    if value is DELETED:
        return {name: item for name, item in meta.items() if name != key}
    return {**meta, key: value}


def replace_all(meta: Mapping[str, Any], value: Any, of_document: bool) -> Mapping[str, Any]:
    """Return an object as the whole metadata; anything else is refused by its type."""
    if value is NOTHING:
        return meta
    if value is DELETED:
        return {}
    if type(value) is dict:
        return value
    kind = go_type(value, of_document=of_document)
    raise QueryError(f"setting root meta object requires object value, received: {kind}")


def refuse_assignment(value: Any) -> None:
    """Fail, as an assignment to metadata within a named map does, unless there is no value."""
    if value is not NOTHING:
        raise QueryError("unable to assign metadata in the current context")


def value_text(meta: Mapping[str, Any], key: str) -> str | None:
    """Return a value as text, null when it is missing or empty, as `meta("key")` does."""
    return plain_text(meta[key]) if key in meta else None


def plain_text(value: Any) -> str | None:
    """Return a metadata value as text, null when that is empty."""
    return metadata_text(value) or None


def to_texts(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return all metadata as texts."""
    return {key: metadata_text(value) for key, value in meta.items()}
