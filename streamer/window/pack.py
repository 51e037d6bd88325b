"""The pack: many messages of one pane as one byte string, the unit of the shuffle and of state.

A pack is a header that can be read without unpacking, then one compressed frame of columns:
distinct metadata and which message has which, arrival numbers, the groups of a keyed pack, and the
payloads, joined. What all messages share is written once, what follows by itself not at all.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from streamer.errors import StreamerError
from streamer.window.ints import (
    Ints,
    pack_ints,
    pack_steps,
    pack_strings,
    string_column,
    unpack_ints,
    unpack_steps,
    unpack_strings,
)
from streamer.window.versions import check_format

VERSION: Final = 1
FOLDED: Final = 2
"""The version of a pack that holds folded groups (`folds.pack`) instead of messages."""
TIMED: Final = 3
"""The version of a pack of messages that has something to say of their event times."""
Body = bytes | memoryview
Stored = tuple[Body, int]
"""A pack, and what is to be added to its arrival numbers."""

LIMIT: Final = 4 * 1024 * 1024
"""Bytes of payload in a pack at most, unless one message alone is bigger."""

_KEYED: Final = 1
_LENGTHS: Final = 2  # a payload holds a newline, so they are cut by their lengths
_ARRIVALS: Final = 4  # they are not simply first, first + 1, …

# version, flags, messages, payload bytes, first and last arrival, key id, bytes of the frame's
# content, checksum of the frame
_HEADER: Final = struct.Struct("<BBIQqqIQI")
_SECTIONS: Final = struct.Struct("<6Q")
_TIMED_SECTIONS: Final = struct.Struct("<9Q")
_SIMPLE: Final = 6
_WRAP: Final = 1 << 64


class PackError(StreamerError):
    """A pack cannot be read: it is damaged, or written by a later version of the program."""


class Header(NamedTuple):
    """What can be told of a pack without unpacking it.

    Attributes:
        messages: how many.
        raw: bytes of their payloads.
        first: smallest arrival number.
        last: largest arrival number.
        key_id: identifies the key by which the messages are grouped; None when they are not.
        folded: whether it holds folded groups; `raw` is then the bytes of what it holds.
    """

    messages: int
    raw: int
    first: int
    last: int
    key_id: int | None
    folded: bool = False


@dataclass(slots=True)
class Columns:
    """The messages of a pack to be; one that is keyed has them sorted by group, then by arrival.

    Attributes:
        payloads: by message.
        lengths: by message, of its payload.
        arrivals: by message.
        metas: distinct metadata, as `encode_meta` writes it.
        meta_ids: by message, the index into `metas`; None when there is only one.
        keys: by group; None when the messages are not grouped.
        counts: by group, its number of messages.
        key_id: identifies the expression that gave the keys.
        newest: by group (one when they are not grouped), the largest event time, ns.
        times: by message, its event time, ns.
        lags: by message, how far the clock before it was beyond its event time, ns, >= 0; None
            when it nowhere was.
    """

    payloads: list[bytes]
    lengths: Ints
    arrivals: Ints
    metas: list[bytes]
    meta_ids: Ints | None = None
    keys: list[bytes] | None = None
    counts: Ints | None = None
    key_id: int = 0
    newest: Ints | None = None
    times: Ints | None = None
    lags: Ints | None = None


def encode(columns: Columns) -> bytes:
    """Write a pack."""
    payloads = columns.payloads
    count = len(payloads)
    raw = int(columns.lengths.sum())
    flags = 0
    arrivals = keys = groups = b""
    first = int(columns.arrivals.min())
    relative = columns.arrivals - first
    if not np.array_equal(relative, np.arange(count)):
        flags |= _ARRIVALS
        arrivals = pack_steps(relative)
    if columns.keys is not None and columns.counts is not None:
        flags |= _KEYED
        starts = np.cumsum(columns.counts) - columns.counts
        sizes = np.add.reduceat(columns.lengths, starts)
        groups = _pair(pack_ints(columns.counts), pack_ints(sizes))
        keys = pack_strings(columns.keys)
    ids = b"" if columns.meta_ids is None else pack_ints(columns.meta_ids)
    sections = (pack_strings(columns.metas), ids, arrivals, keys, groups, b"", *_timed(columns))
    # One join of everything: the payloads are copied only once.
    content = b"\n".join([_front(sections), *payloads])
    if content.count(b"\n", len(content) - raw - count) != count:
        flags |= _LENGTHS
        sections = (*sections[:5], pack_ints(columns.lengths), *sections[6:])
        content = b"".join([_front(sections), b"\n", *payloads])
    last = first + int(relative.max())
    version = VERSION if len(sections) == _SIMPLE else TIMED
    return _closed(version, flags, Header(count, raw, first, last, columns.key_id), content)


def _timed(columns: Columns) -> tuple[bytes, ...]:
    """Return the sections of event times, if there is anything to say of them."""
    if columns.newest is None and columns.times is None:
        return ()
    times = b"" if columns.times is None else _pack_times(columns.times)
    newest = b"" if columns.newest is None else _pack_times(columns.newest)
    lags = b"" if columns.lags is None else pack_steps(columns.lags)
    return newest, times, lags


def _pack_times(times: Ints) -> bytes:
    """Write event times: the least, then how far the others are from it."""
    least = times.min()
    # As unsigned numbers: two times may lie more than an int64 apart.
    beyond = times.astype(np.uint64) - np.uint64(int(least) % _WRAP)
    return int(least).to_bytes(8, "little", signed=True) + pack_steps(beyond)


def _unpack_times(data: bytes) -> Ints | None:
    if not data:
        return None
    least = np.int64(int.from_bytes(data[:8], "little", signed=True))
    found: Ints = unpack_steps(data[8:]) + least
    return found


def close(header: Header, content: bytes) -> bytes:
    """Write a pack of folded groups."""
    flags = 0 if header.key_id is None else _KEYED
    return _closed(FOLDED, flags, header, content)


def _closed(version: int, flags: int, header: Header, content: bytes) -> bytes:
    frame: bytes = _codec().compress(content, asbytes=True)
    count, raw, first, last, key_id, _ = header
    size, checksum = len(content), zlib.crc32(frame)
    front = (version, flags, count, raw, first, last, key_id or 0, size, checksum)
    return _HEADER.pack(*front) + frame


def _front(sections: Sequence[bytes]) -> bytes:
    lengths = _SECTIONS if len(sections) == _SIMPLE else _TIMED_SECTIONS
    return b"".join((lengths.pack(*map(len, sections)), *sections))


def peek(body: Body) -> Header:
    """Read the header of a pack.

    Raises:
        PackError: it is no pack, or of an unknown version.
    """
    version, flags, count, raw, first, last, key_id, _, _ = _header(body)
    keyed = key_id if flags & _KEYED else None
    return Header(count, raw, first, last, keyed, version == FOLDED)


def open_folded(body: Body) -> tuple[Header, bytes]:
    """Read the header and the content of a pack of folded groups.

    Raises:
        PackError: the pack is damaged or of an unknown version.
    """
    return peek(body), _content(body)


def _content(body: Body) -> bytes:
    _, _, count, _, _, _, _, size, checksum = _header(body)
    frame = memoryview(body)[_HEADER.size :]
    if zlib.crc32(frame) != checksum:
        raise PackError(
            f"a window's pack of {count} messages is damaged: its checksum does not fit; "
            "restore the checkpoint from a copy, or start from another one"
        )
    content: bytes = _codec().decompress(frame, size, asbytes=True)
    return content


class Pack:
    """A pack, unpacked: its columns are at hand, its payloads are cut out when asked for.

    Attributes:
        header: as `peek` gives it, with the arrivals shifted.
        arrivals: by message, shifted.
        metas: distinct metadata, as `encode_meta` writes it.
        meta_ids: by message; None when all have metas[0].
        starts: by group, the index of its first message; one more at the end.
        newest: by group (one when it is not keyed), the largest event time, ns; or None.
        times: by message, its event time, ns; or None.
        lags: by message, how far the clock before it was beyond its event time; None for nowhere.
    """

    __slots__ = (
        "header",
        "arrivals",
        "metas",
        "meta_ids",
        "starts",
        "newest",
        "times",
        "lags",
        "_names",
        "_keys",
        "_content",
        "_cuts",
        "_by_length",
    )

    def __init__(self, body: Body, shift: int = 0) -> None:
        """Unpack.

        Args:
            body: what `encode` wrote.
            shift: what is added to every arrival number.

        Raises:
            PackError: the pack is damaged or of an unknown version.
        """
        version, flags, count, raw, first, last, key_id, _, _ = _header(body)
        content = _content(body)
        layout = _TIMED_SECTIONS if version == TIMED else _SECTIONS
        position = layout.size
        sections = []
        for length in layout.unpack_from(content):
            sections.append(content[position : position + length])
            position += length
        position += 1
        metas, ids, arrivals, keys, groups, lengths, *timed = sections
        newest, times, lags = timed or (b"", b"", b"")
        self.newest = _unpack_times(newest)
        self.times = _unpack_times(times)
        self.lags = unpack_steps(lags) if lags else None
        self._content = content
        first += shift
        self.header = Header(count, raw, first, last + shift, key_id if flags & _KEYED else None)
        self.metas = unpack_strings(metas)
        self.meta_ids = unpack_ints(ids) if ids else None
        steps = unpack_steps(arrivals) if flags & _ARRIVALS else np.arange(count, dtype=np.int64)
        self.arrivals = steps + first
        self._names = keys if flags & _KEYED else b""
        self._keys: list[bytes] | None = None
        self.starts = [0, count]
        # Where the content is cut: at every payload when their lengths are known, else at every
        # group, one beyond the newline that follows it.
        self._by_length = bool(flags & _LENGTHS)
        self._cuts = [position, len(content) + 1]
        if flags & _KEYED:
            counts, sizes = map(unpack_ints, _unpair(groups))
            self.starts = [0, *np.cumsum(counts).tolist()]
            self._cuts = [position, *(np.cumsum(sizes + counts) + position).tolist()]
        if self._by_length:
            self._cuts = [position, *(np.cumsum(unpack_ints(lengths)) + position).tolist()]

    @property
    def keys(self) -> list[bytes]:
        """By group, its key; empty when the pack is not keyed."""
        if self._keys is None:
            self._keys = unpack_strings(self._names) if self._names else []
        return self._keys

    @property
    def key_column(self) -> pa.Array:
        """The same as a column, which is at hand without making an object of each."""
        return string_column(self._names) if self._names else pa.array([], pa.binary())

    def payloads(self) -> list[bytes]:
        """Cut out the payloads of all messages."""
        return self._cut(0, len(self.starts) - 1)

    def span(self, index: int) -> slice:
        """Return where the messages of a group are in the columns."""
        return slice(self.starts[index], self.starts[index + 1])

    def group(self, index: int) -> list[bytes]:
        """Cut out the payloads of one group."""
        return self._cut(index, index + 1)

    def _cut(self, first: int, last: int) -> list[bytes]:
        cuts, content = self._cuts, self._content
        if not self._by_length:
            return content[cuts[first] : cuts[last] - 1].split(b"\n")
        span = range(self.starts[first], self.starts[last])
        return [content[cuts[i] : cuts[i + 1]] for i in span]


def _header(body: Body) -> tuple[int, ...]:
    if len(body) < _HEADER.size:
        raise PackError(f"a window's pack is cut short: it has {len(body)} bytes")
    found: tuple[int, ...] = _HEADER.unpack_from(body)
    check_format("a window's pack", found[0], (VERSION, FOLDED, TIMED), PackError)
    return found


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=1)


def lengths_of(payloads: Sequence[bytes]) -> Ints:
    """Return the length of each payload."""
    return np.fromiter(map(len, payloads), np.int64, len(payloads))


def _pair(left: bytes, right: bytes) -> bytes:
    return len(left).to_bytes(4, "little") + left + right


def _unpair(data: bytes) -> tuple[bytes, bytes]:
    start = 4 + int.from_bytes(data[:4], "little")
    return data[4:start], data[start:]
