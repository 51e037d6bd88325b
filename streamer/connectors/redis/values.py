"""Values as arguments of commands, and answers of commands as values."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import Mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.timestamps import Timestamp
from streamer.core.value import Number, format_float
from streamer.sdk.mapping_query import query_value

GO_NAMES: Final[dict[type, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    type(None): "<nil>",
}


def to_argument(value: Any) -> str | bytes | int:
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


def evaluate_arguments(mapping: Mapping, batch: Batch, index: int, ex: Execution) -> list[Any]:
    """Return what a mapping makes of a message, an array.

    Raises:
        MessageError: it fails, or makes something else.
    """
    values = query_value(mapping, batch, index, ex)
    if not isinstance(values, list):
        name = GO_NAMES.get(type(values), "json.Number")
        raise MessageError(f"mapping returned non-array result: {name}")
    return values


def from_reply(reply: Any) -> Any:
    """Return what a command has answered as a Bloblang value."""
    if isinstance(reply, bytes):
        return reply.decode(errors="replace")
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, dict):
        return {str(from_reply(key)): from_reply(value) for key, value in reply.items()}
    if isinstance(reply, list | tuple | set | frozenset):
        return [from_reply(one) for one in reply]
    return reply
