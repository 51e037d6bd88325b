"""A mapping that is asked for a value: true or false for a check, a document for log fields."""

from __future__ import annotations

from typing import Any

from streamer.bloblang import Interpolation, Mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Batch
from streamer.core.value import DELETED, NOTHING, type_name


def empty_mapping_problem(text: str) -> str | None:
    """Check a mapping's field: Benthos has no empty mapping either."""
    return None if text.strip() else "the mapping is empty; expected one such as root = this"


def interpolate(name: str, text: Interpolation, batch: Batch, index: int, ex: Execution) -> str:
    """Return the text of a field for one message of a batch.

    Raises:
        MessageError: an expression in it failed; names the field.
    """
    try:
        return text.text_of(batch, index, ex)
    except MessageError as error:
        raise MessageError(f"{name} interpolation error: {error}") from None


def query_value(mapping: Mapping, batch: Batch, index: int, ex: Execution) -> Any:
    """Return what the mapping makes of a message, read as a structured value.

    A mapping that assigns nothing leaves the message's own document. Text is read as JSON, for in
    Benthos it becomes the payload of a message, which is then parsed.

    Returns:
        The value, or `DELETED`.

    Raises:
        MessageError: the mapping failed, or its text is not JSON.
    """
    value = mapping.query(batch, index, ex)
    if value is NOTHING:
        return batch[index].doc
    if isinstance(value, (str, bytes)):
        try:
            return parse_json(value.encode() if isinstance(value, str) else value)
        except ValueError as e:
            raise MessageError(str(e)) from None
    return value


def query_bool(mapping: Mapping, batch: Batch, index: int, ex: Execution) -> bool:
    """Return a check's answer for one message of a batch.

    Raises:
        MessageError: the mapping failed, deleted the message, or gave no boolean.
    """
    value = query_value(mapping, batch, index, ex)
    if value is True or value is False:
        return value
    if value is DELETED:
        raise MessageError("query mapping resulted in deleted message, expected a boolean value")
    shown = ""
    if isinstance(value, str):
        shown = f' ("{value}")'
    elif isinstance(value, (int, float)):
        shown = f" ({value})"
    raise MessageError(f"expected bool value, got {type_name(value)} from mapping{shown}")
