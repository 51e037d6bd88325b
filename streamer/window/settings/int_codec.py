"""Arrays of integers as few bytes, laid out so that the compressor finds what repeats."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_UINT64: Final = (1 << 64) - 1
_UINT_TYPES: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def pack_ints(values: Ints) -> bytes:
    """Write non-negative integers: their width, all lowest bytes, all second bytes and so on."""
    if not len(values):
        return b""
    return _pack_planes(values)


def _pack_planes(values: NDArray[Any]) -> bytes:
    width = _width_of(int(values.max()))
    planes = values.astype(_UINT_TYPES[width]).view(np.uint8).reshape(-1, width).T
    return bytes([width]) + planes.tobytes()


def unpack_ints(data: bytes) -> Ints:
    """Read what `pack_ints` wrote."""
    if not data:
        return np.empty(0, np.int64)
    width = data[0]
    planes = np.frombuffer(data, np.uint8, offset=1).reshape(width, -1)
    return np.ascontiguousarray(planes.T).view(_UINT_TYPES[width]).ravel().astype(np.int64)


def pack_deltas(values: Ints | NDArray[np.uint64]) -> bytes:
    """Write integers >= 0 as their steps: small when they mostly rise a little."""
    if not len(values):
        return b""
    width = _width_of(int(values.max()))
    kind = _UINT_TYPES[width]
    # Unsigned numbers wrap around, so a step back needs no sign and the sums come out right.
    steps = np.diff(values.astype(kind), prepend=np.zeros(1, kind))
    return bytes([width]) + steps.view(np.uint8).reshape(-1, width).T.tobytes()


def unpack_deltas(data: bytes) -> Ints:
    """Read what `pack_deltas` wrote."""
    if not data:
        return np.empty(0, np.int64)
    width = data[0]
    planes = np.frombuffer(data, np.uint8, offset=1).reshape(width, -1)
    steps = np.ascontiguousarray(planes.T).view(_UINT_TYPES[width]).ravel()
    return np.cumsum(steps, dtype=_UINT_TYPES[width]).astype(np.int64)


def pack_times(values: Ints) -> bytes:
    """Write integers of any sign that lie near each other: the least, and how far above it."""
    if not len(values):
        return b""
    least = int(values.min())
    # Unsigned numbers wrap around, so that no distance is too far.
    above = values.astype(np.uint64) - np.uint64(least & _UINT64)
    return least.to_bytes(8, "little", signed=True) + _pack_planes(above)


def unpack_times(data: bytes) -> Ints:
    """Read what `pack_times` wrote."""
    if not data:
        return np.empty(0, np.int64)
    least = int.from_bytes(data[:8], "little", signed=True)
    above = unpack_ints(data[8:]).astype(np.uint64)
    return (above + np.uint64(least & _UINT64)).astype(np.int64)


def pack_strings(values: list[bytes]) -> bytes:
    """Write byte strings: their number and lengths, then all of them in a row."""
    lengths = pack_ints(np.fromiter(map(len, values), np.int64, len(values)))
    return len(lengths).to_bytes(4, "little") + lengths + b"".join(values)


def unpack_strings(data: bytes) -> list[bytes]:
    """Read what `pack_strings` wrote."""
    start = 4 + int.from_bytes(data[:4], "little")
    ends = np.cumsum(unpack_ints(data[4:start])) + start
    strings = []
    for end in ends.tolist():
        strings.append(data[start:end])
        start = end
    return strings


def unpack_string_column(data: bytes) -> pa.Array:
    """Read what `pack_strings` wrote as a column of byte strings, which refers to `data`."""
    start = 4 + int.from_bytes(data[:4], "little")
    lengths = unpack_ints(data[4:start])
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(memoryview(data)[start:])]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _width_of(largest: int) -> int:
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4 if largest < 1 << 32 else 8
