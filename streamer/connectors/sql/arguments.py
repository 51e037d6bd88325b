"""The arguments of statements: what a mapping makes of a message, as an array."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang import Mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.timestamps import Timestamp
from streamer.core.vector import Vector
from streamer.sdk.mapping_query import query_value

_PLAIN: Final = (str, bool, int, float, bytes, Timestamp)
# What Go calls the types of values, in the errors of its database package.
_NAMES: Final[dict[type, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    bytes: "[]uint8",
    Timestamp: "time.Time",
    type(None): "<nil>",
}
_KINDS: Final[dict[type, str]] = {dict: "a map", list: "a slice of interface"}


class ArgumentsMapping:
    """Evaluates a mapping for the arguments of a statement."""

    def __init__(self, mapping: Mapping | None) -> None:
        """Take the mapping; without one there are no arguments."""
        self._mapping = mapping

    def evaluate(self, batch: Batch, index: int, ex: Execution) -> list[Any]:
        """Return the arguments for one message of a batch.

        Raises:
            MessageError: the mapping fails, or gives no array, or one of what no column can hold.
        """
        if self._mapping is None:
            return []
        values = query_value(self._mapping, batch, index, ex)
        if not isinstance(values, list):
            name = _NAMES.get(type(values), "json.Number")
            raise MessageError(f"mapping returned non-array result: {name}")
        for number, value in enumerate(values, 1):
            if isinstance(value, Vector):
                values[number - 1] = value.to_text()
            elif value is not None and not isinstance(value, _PLAIN):
                name, kind = _NAMES.get(type(value), "value"), _KINDS.get(type(value), "none")
                raise MessageError(
                    f"sql: converting argument ${number} type: unsupported type {name}, {kind}"
                )
        return values
