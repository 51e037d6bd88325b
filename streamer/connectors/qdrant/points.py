"""Points of Qdrant: ids, vectors and payloads, from the values that mappings give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.ai.vectors import read_floats
from streamer.connectors.qdrant.messages import message_class
from streamer.core.value import type_name

_MAX_DEPTH: Final = 64
_INT64: Final = 1 << 63


def make_point_id(value: Any) -> Any:
    """Return an id: a text for a UUID, or a number that is not negative.

    Raises:
        ModelError: it is neither.
    """
    if isinstance(value, str):
        return message_class("PointId")(uuid=value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and value == int(value) and 0 <= value < 2 * _INT64:
        return message_class("PointId")(num=int(value))
    shown = value if is_number else type_name(value)
    raise ModelError(f"id gives {shown}; expected a UUID or a number from 0")


def make_vectors(value: Any, name: str) -> dict[str, Any]:
    """Return vectors by name; the one without a name has the empty one.

    Raises:
        ModelError: it is no vector, and no object of vectors by name.
    """
    if isinstance(value, list):
        return {"": _make_vector(value, name)}
    if isinstance(value, dict) and value:
        return {key: _make_vector(one, f"{name} {key}") for key, one in value.items()}
    raise ModelError(
        f"{name} gives {type_name(value)}; expected a list of numbers, or vectors by name"
    )


def _make_vector(value: Any, name: str) -> Any:
    vector = message_class("Vector")()
    if isinstance(value, dict):
        vector.sparse.values.extend(read_floats(value.get("values", []), f"{name} values"))
        indices = read_floats(value.get("indices", []), f"{name} indices")
        if not all(index == int(index) and 0 <= index < 1 << 32 for index in indices):
            raise ModelError(f"{name} has an index that is no number from 0 to 4294967295")
        vector.sparse.indices.extend(map(int, indices))
    elif isinstance(value, list) and value and isinstance(value[0], list):
        for row in value:
            vector.multi_dense.vectors.add().data.extend(read_floats(row, name))
    else:
        numbers = read_floats(value, name)
        if not numbers:
            raise ModelError(f"{name} gives an empty list; expected a list of numbers")
        vector.dense.data.extend(numbers)
    return vector


def fill_payload(target: Any, payload: Mapping[str, Any]) -> None:
    """Put an object into the payload of a point.

    Raises:
        ModelError: a value is none of JSON, or too deep.
    """
    for key, value in payload.items():
        _fill(target[key], value, 0)


def _fill(target: Any, value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ModelError(f"payload_mapping gives a value that is deeper than {_MAX_DEPTH} levels")
    if value is None:
        target.null_value = 0
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int) and -_INT64 <= value < _INT64:
        target.integer_value = value
    elif isinstance(value, int | float):
        target.double_value = float(value)
    elif isinstance(value, dict):
        # An empty object is one too.
        target.struct_value.SetInParent()
        for key, item in value.items():
            _fill(target.struct_value.fields[key], item, depth + 1)
    elif isinstance(value, list):
        target.list_value.SetInParent()
        for item in value:
            _fill(target.list_value.values.add(), item, depth + 1)
    else:
        target.string_value = value.decode(errors="replace") if type(value) is bytes else str(value)
