"""Functions that put bytes into the form that other systems expect on the wire."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import text_of
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.bloblang.golib.text import go_type

_MAX_ID: Final = (1 << 32) - 1


@declare(
    "with_schema_registry_header",
    "Encoding",
    Param("schema_id", "any"),
    Param("message", "any"),
    examples=(
        Example('root = with_schema_registry_header(7, "x").encode("hex")', "{}", "000000000778"),
    ),
    own_errors=True,
    origin=CONNECT,
)
def with_schema_registry_header(schema_id: Any, message: Any) -> bytes:
    """The bytes with the header of a schema in a Confluent schema registry."""
    if type(schema_id) not in NUMBER_TYPES:
        raise QueryError(f"schema ID must be a number, got {go_type(schema_id)}")
    if schema_id % 1 or not 0 <= schema_id <= _MAX_ID:
        raise QueryError(f"schema ID must be between 0 and {_MAX_ID}, got {schema_id}")
    raw = message if type(message) is bytes else text_of(message, "bytes").encode()
    return b"\0" + int(schema_id).to_bytes(4, "big") + raw
