"""Places of records, and of their values, in decompressed record batches.

A record begins with its length, so that where one begins is known when the one before it is read.
That is a loop, 0.1 µs a record. But lengths from 64 to 8,191 bytes have two bytes, and the third is
zero (attributes, which nobody uses): such places are found in all batches of an answer at once.
They are the records when each begins where the one before it ends, and their number is right; else
the loop finds them, as it does where records are so large that it is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamer.core.json.columns.line_block import LineRange

Ints = NDArray[np.int64]
Octets = NDArray[np.uint8]

_INT64: Final = np.int64
_LEAST_MEAN: Final = 66
_LARGEST_MEAN: Final = 600
"""Bytes of records, with their lengths, of which some have a length of two bytes. The loop is
faster for larger ones."""

_NEWLINE: Final = 10
_LARGE_VALUE: Final = 400
"""Bytes of values, on average, from which they are joined one by one."""
_MAX_ARROW_BYTES: Final = (1 << 31) - 1


def find_records(buffer: bytes | bytearray, sizes: Sequence[int], counts: Sequence[int]) -> Ints:
    """Return where records begin behind their lengths.

    Args:
        buffer: the records of batches that follow one another.
        sizes: bytes of each batch.
        counts: records of each batch.

    Raises:
        ValueError: the records of a batch do not end where it ends.
        IndexError: they end behind the buffer.
    """
    usual = _find_by_pattern(np.frombuffer(buffer, np.uint8), sizes, counts)
    if usual is not None:
        return usual
    starts: list[int] = []
    at = 0
    for size, count in zip(sizes, counts, strict=True):
        at = _find_one_by_one(buffer, at, at + size, count, starts)
    return np.array(starts, _INT64)


def _find_by_pattern(octets: Octets, sizes: Sequence[int], counts: Sequence[int]) -> Ints | None:
    """Return where records begin that have lengths of two bytes; None where some have not."""
    total, size = sum(counts), len(octets)
    if not total * _LEAST_MEAN <= size <= total * _LARGEST_MEAN:
        return None
    is_candidate = octets[2:] == 0
    is_candidate &= octets[:-2] > 127
    starts = np.flatnonzero(is_candidate) + 2
    second = octets[starts - 1]
    if (second > 127).any():
        starts, second = starts[second < 128], second[second < 128]
    ends = starts + ((octets[starts - 2] & 127 | second.astype(_INT64) << 7) >> 1)
    while len(starts) > total:
        # What others end at, and what ends at others, are fewer each time.
        is_end = np.zeros(size + 1, np.bool_)
        is_end[0] = True
        is_end[ends[ends <= size]] = True
        is_begin = np.zeros(size + 1, np.bool_)
        is_begin[size] = True
        is_begin[starts - 2] = True
        is_linked = is_end[starts - 2] & is_begin[np.minimum(ends, size)] & (ends <= size)
        if is_linked.all():
            return None
        starts, ends = starts[is_linked], ends[is_linked]
    last_of_each = np.cumsum(counts) - 1
    if (
        len(starts) != total
        or starts[0] != 2
        or not np.array_equal(starts[1:] - 2, ends[:-1])
        or not np.array_equal(ends[last_of_each], np.fromiter(accumulate(sizes), _INT64))
    ):
        return None
    return starts


def _find_one_by_one(
    buffer: bytes | bytearray, at: int, until: int, count: int, starts: list[int]
) -> int:
    """Add where the records of a batch begin, behind their lengths; return where they end."""
    append = starts.append
    for _ in range(count):
        length = buffer[at]
        at += 1
        if length > 127:
            byte, shift = buffer[at], 7
            at += 1
            length = length & 127 | (byte & 127) << 7
            while byte > 127:
                byte, shift = buffer[at], shift + 7
                at += 1
                length |= (byte & 127) << shift
        append(at)
        at += length >> 1  # lengths are zigzag numbers, and not negative
    if at != until:
        raise ValueError(f"its {count} records end {at - until} bytes behind it")
    return at


def read_varints(octets: Octets, places: Ints) -> tuple[Ints, Ints]:
    """Read a zigzag number at each place; return them, and the places behind them."""
    byte = octets[places].astype(_INT64)
    raw, places = byte & 127, places + 1
    shift = 7
    while (more := np.flatnonzero(byte > 127)).size:
        if shift > 63:
            raise ValueError("a number in it has no end")
        byte = np.zeros(len(places), _INT64)
        byte[more] = octets[places[more]]
        raw |= (byte & 127) << shift
        places[more] += 1
        shift += 7
    return (raw >> 1) ^ -(raw & 1), places


def cut_values(buffer: bytes, places: Ints, sizes: Ints) -> list[bytes]:
    """Return the bytes at places; none where a size is negative, which stands for no value."""
    ends = places + np.maximum(sizes, 0)
    if len(ends) and int(ends.max()) > len(buffer):
        raise ValueError("a record in it has no end")
    return [buffer[start:end] for start, end in zip(places.tolist(), ends.tolist(), strict=True)]


def join_values(buffer: bytearray, places: Ints, sizes: Ints) -> LineRange | None:
    """Return the bytes at places as lines, without an object for each.

    The byte behind each value is overwritten.

    None where one of them has a newline or another control character in it, or where there are too
    many bytes, or other ones than records can have.
    """
    count, ends = len(places), places + np.maximum(sizes, 0)
    if not count or len(buffer) > _MAX_ARROW_BYTES or int(ends.max()) >= len(buffer):
        return None
    # Each value with the byte behind it, and what lies between two values.
    edges = np.empty(2 * count + 1, np.int32)
    edges[:-1:2] = places
    edges[1::2] = ends + 1
    edges[-1] = len(buffer)
    if (edges[1:] < edges[:-1]).any():
        return None
    np.frombuffer(buffer, np.uint8)[ends] = _NEWLINE
    lines = np.cumsum(ends - places + 1)
    if len(buffer) > count * _LARGE_VALUE:
        view, behind = memoryview(buffer), (ends + 1).tolist()
        data = b"".join(map(view.__getitem__, map(slice, places.tolist(), behind)))
    else:
        parts = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(edges), pa.py_buffer(buffer)]
        )
        joined = parts.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
        data = joined.buffers()[2].slice(0, int(lines[-1])).to_pybytes()
    return LineRange.of_ends(data, lines - 1)
