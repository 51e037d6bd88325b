"""Values of messages as bytes, exactly as they were: numbers keep their type and their text.

They are pickled, for that keeps every value apart from its like. What is read can only be made of
plain values and of those that are named here: nothing in a checkpoint is ever called.
"""

from __future__ import annotations

import base64
import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np
import orjson
from numpy.typing import NDArray

from streamer.bloblang.message_expression import ErrorValue
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, NOTHING, Number, UInt

Objects = NDArray[np.object_]

_PROTOCOL: Final = 4
_SAMPLE_SIZE: Final = 16
_JSON_TYPES: Final = frozenset((str, bool, type(None)))
_MIN_INT64, _INT64_LIMIT = -(1 << 63), 1 << 63
_PARSED_SIZE_FACTOR: Final = 4  # so many times its text takes a document that was parsed

_WRITERS: Final[dict[type, Callable[[Any], tuple[Any, ...]]]] = {
    Number: lambda value: ("number", value.text, float(value)),
    UInt: lambda value: ("uint", int(value)),
    Timestamp: lambda value: ("time", value.ns, value.offset, value.zone, value.location),
    ErrorValue: lambda value: ("failed", *value),
}
_READERS: Final[dict[str, Callable[..., Any]]] = {
    "number": Number,
    "uint": UInt,
    "time": Timestamp,
    "failed": ErrorValue,
    "deleted": lambda: DELETED,
    "nothing": lambda: NOTHING,
}


class _Writer(pickle.Pickler):
    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        write = _WRITERS.get(type(value))
        if write is not None:
            return write(value)
        if value is DELETED:
            return ("deleted",)
        return ("nothing",) if value is NOTHING else None


class _Reader(pickle.Unpickler):
    def persistent_load(self, written: Any) -> Any:
        name, *rest = written
        return _READERS[name](*rest)

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"the state of a window names {module}.{name}")


def write_values(values: Sequence[Any]) -> bytes:
    """Return values as bytes."""
    out = io.BytesIO()
    _Writer(out, _PROTOCOL).dump(list(values))
    return out.getvalue()


def read_values(data: bytes) -> list[Any]:
    """Return the values that were written."""
    values: list[Any] = _Reader(io.BytesIO(data)).load()
    return values


def dump_value(value: Any) -> Any:
    """Return a value as one of JSON: a list of one text where JSON would not keep it as it is."""
    kind = type(value)
    if kind in _JSON_TYPES or (kind is int and _MIN_INT64 <= value < _INT64_LIMIT):
        return value
    if kind is float and value - value == 0:
        return value
    return [base64.b64encode(write_values([value])).decode()]


def load_value(plain: Any) -> Any:
    """Return the value that was dumped."""
    if type(plain) is list:
        return read_values(base64.b64decode(plain[0]))[0]
    return plain


def make_object_array(values: Sequence[Any]) -> Objects:
    """Return values as an array of as many objects, whatever they are."""
    return np.fromiter(values, np.object_, len(values))


def estimate_size(values: Sequence[Any]) -> int:
    """Return about how many bytes parsed values hold, judged by a few of them."""
    if set(map(type, values)) <= {str, int, float, bool, type(None)}:
        return sum(map(len, filter(_is_text, values))) + 32 * len(values)
    step = max(len(values) // _SAMPLE_SIZE, 1)
    sample = values[::step]
    return _PARSED_SIZE_FACTOR * sum(_json_length(value) for value in sample) * step


def _is_text(value: Any) -> bool:
    return type(value) is str


def _json_length(value: Any) -> int:
    try:
        return 16 + len(orjson.dumps(value))
    except TypeError:
        return 64
