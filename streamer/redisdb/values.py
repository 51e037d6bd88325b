"""Values as arguments of commands, and answers of commands as values."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import Mapping
from streamer.errors import MessageError
from streamer.message import Batch, Execution
from streamer.query import query_value
from streamer.timestamps import Timestamp
from streamer.value import Number, format_float

GO_NAMES: Final[dict[type, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    type(None): "<nil>",
}


def argument(value: Any) -> str | bytes | int:
    """Return a value as it is sent.

    Raises:
        MessageError: it is an object or an array.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Number):
        return value.text
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str | bytes):
        return value
    if value is None:
        return ""
    if isinstance(value, Timestamp):
        return str(value)
    name = GO_NAMES.get(type(value), type(value).__name__)
    raise MessageError(f"redis: can't marshal {name} (implement encoding.BinaryMarshaler)")


def arguments(mapping: Mapping, batch: Batch, index: int, ex: Execution) -> list[Any]:
    """Return what a mapping makes of a message, an array.

    Raises:
        MessageError: it fails, or makes something else.
    """
    found = query_value(mapping, batch, index, ex)
    if not isinstance(found, list):
        name = GO_NAMES.get(type(found), "json.Number")
        raise MessageError(f"mapping returned non-array result: {name}")
    return found


def answer(found: Any) -> Any:
    """Return what a command has answered as a Bloblang value."""
    if isinstance(found, bytes):
        return found.decode(errors="replace")
    if isinstance(found, bool):
        return int(found)
    if isinstance(found, dict):
        return {str(answer(key)): answer(value) for key, value in found.items()}
    if isinstance(found, list | tuple | set | frozenset):
        return [answer(one) for one in found]
    return found
