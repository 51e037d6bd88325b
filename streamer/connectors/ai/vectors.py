"""Vectors that mappings give, for databases of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.connectors.ai.errors import ModelError
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.value import DELETED, NOTHING, type_name
from streamer.sdk.mapping_query import query_value


class FieldValue:
    """A field whose mapping gives a value of a message, with its batch at hand."""

    def __init__(self, name: str, mapping: str, *, is_document: bool = True) -> None:
        """Compile the mapping.

        Args:
            name: of the field.
            mapping: its text.
            is_document: whether a text that the mapping gives is read as JSON.
        """
        self._name = name
        self._is_document = is_document
        self._mapping: Mapping = compile_mapping(mapping)

    def of(self, batch: Batch, index: int, ex: Execution) -> Any:
        """Return the value, or `DELETED`.

        Raises:
            MessageError: the mapping fails.
        """
        try:
            if self._is_document:
                return query_value(self._mapping, batch, index, ex)
            value = self._mapping.query(batch, index, ex)
            return batch[index].doc if value is NOTHING else value
        except MessageError as error:
            raise ModelError(f"executing {self._name}: {error}") from None


_MAX_FLOAT32: Final = 3.4028235677973366e38
"""The least number that a 32-bit float cannot be rounded from."""


def read_floats(value: Any, name: str) -> list[float]:
    """Return a list of numbers, which databases store as 32-bit floats.

    Raises:
        ModelError: it is something else.

    >>> read_floats([1, 0.5, "2"], "vector_mapping")
    [1.0, 0.5, 2.0]
    """
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        shown = "a deleted message" if value is DELETED else type_name(value)
        raise ModelError(f"{name} gives {shown}; expected a list of numbers, such as [0.5, 1]")
    numbers = []
    for place, item in enumerate(value):
        try:
            number = float(item) if not isinstance(item, bool) else None
        except (TypeError, ValueError):
            number = None
        if number is None or not abs(number) < _MAX_FLOAT32:
            raise ModelError(f"{name} gives no number at index {place}; expected one such as 0.5")
        numbers.append(number)
    return numbers
