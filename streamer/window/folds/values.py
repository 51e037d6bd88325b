"""Values of messages as bytes, exactly as they were: numbers keep their type and their text.

They are pickled, for that keeps every value apart from its like. What is read can only be made of
plain values and of those that are named here: nothing in a checkpoint is ever called.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np
import orjson
from numpy.typing import NDArray

from streamer.bloblang.element import Failed
from streamer.timestamps import Timestamp
from streamer.value import DELETED, NOTHING, Number, UInt

Objects = NDArray[np.object_]

_PROTOCOL: Final = 4
_SAMPLE: Final = 16
_PARSED: Final = 4  # so many times its text takes a document that was parsed

_WRITE: Final[dict[type, Callable[[Any], tuple[Any, ...]]]] = {
    Number: lambda value: ("number", value.text, float(value)),
    UInt: lambda value: ("uint", int(value)),
    Timestamp: lambda value: ("time", value.ns, value.offset, value.zone, value.location),
    Failed: lambda value: ("failed", *value),
}
_READ: Final[dict[str, Callable[..., Any]]] = {
    "number": Number,
    "uint": UInt,
    "time": Timestamp,
    "failed": Failed,
    "deleted": lambda: DELETED,
    "nothing": lambda: NOTHING,
}


class _Writer(pickle.Pickler):
    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        write = _WRITE.get(type(value))
        if write is not None:
            return write(value)
        if value is DELETED:
            return ("deleted",)
        return ("nothing",) if value is NOTHING else None


class _Reader(pickle.Unpickler):
    def persistent_load(self, written: Any) -> Any:
        name, *rest = written
        return _READ[name](*rest)

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"the state of a window names {module}.{name}")


def write_values(values: Sequence[Any]) -> bytes:
    """Return values as bytes."""
    out = io.BytesIO()
    _Writer(out, _PROTOCOL).dump(list(values))
    return out.getvalue()


def read_values(data: bytes) -> list[Any]:
    """Return the values that were written."""
    found: list[Any] = _Reader(io.BytesIO(data)).load()
    return found


def objects(values: Sequence[Any]) -> Objects:
    """Return values as an array of as many objects, whatever they are."""
    return np.fromiter(values, np.object_, len(values))


def size_of(values: Sequence[Any]) -> int:
    """Return about how many bytes parsed values hold, judged by a few of them."""
    if set(map(type, values)) <= {str, int, float, bool, type(None)}:
        return sum(map(len, filter(_is_text, values))) + 32 * len(values)
    step = max(len(values) // _SAMPLE, 1)
    sample = values[::step]
    return _PARSED * sum(_length(value) for value in sample) * step


def _is_text(value: Any) -> bool:
    return type(value) is str


def _length(value: Any) -> int:
    try:
        return 16 + len(orjson.dumps(value))
    except TypeError:
        return 64
