"""Arrays and objects gone through by generated code."""

from __future__ import annotations

from typing import Any

from streamer.bloblang.errors import TypeMismatch
from streamer.core.value import DELETED, NOTHING


def list_entries(value: Any, *expected: str) -> tuple[list[Any], list[str] | None]:
    """Return an object's entries as `{"key": …, "value": …}`, and its keys.

    Args:
        value: an object, or an array, which has no keys.
        expected: the types to name when it is neither.

    Raises:
        TypeMismatch: the value is neither array nor object.
    """
    if type(value) is dict:
        return [{"key": k, "value": v} for k, v in value.items()], list(value)
    if type(value) is list:
        return value, None
    raise TypeMismatch(value, *expected)


def merge_results(source: list[Any], results: list[Any], keys: list[str] | None) -> Any:
    """Return what `map_each` gives: deleted elements dropped, others kept where it gave nothing."""
    if keys is None:
        return [
            element if result is NOTHING else result
            for element, result in zip(source, results, strict=True)
            if result is not DELETED
        ]
    return {
        key: entry["value"] if result is NOTHING else result
        for key, entry, result in zip(keys, source, results, strict=True)
        if result is not DELETED
    }


def build_object(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the object that consists of the entries."""
    return {entry["key"]: entry["value"] for entry in entries}
