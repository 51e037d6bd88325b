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

from streamer.core.errors import StreamerError
from streamer.window.settings.int_codec import (
    Ints,
    pack_deltas,
    pack_ints,
    pack_strings,
    unpack_deltas,
    unpack_ints,
    unpack_string_column,
    unpack_strings,
)
from streamer.window.state_store import check_format

VERSION: Final = 1
AGGREGATED_VERSION: Final = 2
"""The version of a pack that holds aggregated groups (`aggregate_codec`) instead of messages."""
TIMED_VERSION: Final = 3
"""The version of a pack of messages that has something to say of their event times."""
PAIRED_VERSION: Final = 4
"""The version of a pack of aggregated groups in which each key stands before its payload."""
_AGGREGATED_VERSIONS: Final = (AGGREGATED_VERSION, PAIRED_VERSION)
PackBytes = bytes | memoryview
StoredPack = tuple[PackBytes, int]
"""A pack, and what is to be added to its arrival numbers."""

MAX_PACK_BYTES: Final = 4 * 1024 * 1024
"""Bytes of payload in a pack at most, unless one message alone is bigger."""

_KEYED_FLAG: Final = 1
_LENGTHS_FLAG: Final = 2  # a payload holds a newline, so they are cut by their lengths
_ARRIVALS_FLAG: Final = 4  # they are not simply first, first + 1, …

# version, flags, messages, payload bytes, first and last arrival, key id, bytes of the frame's
# content, checksum of the frame
_HEADER_STRUCT: Final = struct.Struct("<BBIQqqIQI")
_SECTIONS_STRUCT: Final = struct.Struct("<6Q")
_TIMED_SECTIONS_STRUCT: Final = struct.Struct("<9Q")
_UNTIMED_SECTION_COUNT: Final = 6
_UINT64_RANGE: Final = 1 << 64


class PackError(StreamerError):
    """A pack cannot be read: it is damaged, or written by a later version of the program."""


class Header(NamedTuple):
    """Facts about a pack that are known without unpacking it.

    Attributes:
        messages: how many.
        payload_bytes: bytes of their payloads.
        first: smallest arrival number.
        last: largest arrival number.
        key_id: identifies the key by which the messages are grouped; None when they are not.
        is_aggregated: whether it holds aggregated groups; `raw` is then the bytes of what it holds.
    """

    messages: int
    payload_bytes: int
    first: int
    last: int
    key_id: int | None
    is_aggregated: bool = False


@dataclass(slots=True)
class PackColumns:
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
        max_times: by group (one when they are not grouped), the largest event time, ns.
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
    max_times: Ints | None = None
    times: Ints | None = None
    lags: Ints | None = None


def encode_pack(columns: PackColumns) -> bytes:
    """Write a pack."""
    payloads = columns.payloads
    count = len(payloads)
    raw = int(columns.lengths.sum())
    flags = 0
    arrivals = keys = groups = b""
    first = int(columns.arrivals.min())
    relative = columns.arrivals - first
    if not np.array_equal(relative, np.arange(count)):
        flags |= _ARRIVALS_FLAG
        arrivals = pack_deltas(relative)
    if columns.keys is not None and columns.counts is not None:
        flags |= _KEYED_FLAG
        starts = np.cumsum(columns.counts) - columns.counts
        sizes = np.add.reduceat(columns.lengths, starts)
        groups = _join_pair(pack_ints(columns.counts), pack_ints(sizes))
        keys = pack_strings(columns.keys)
    ids = b"" if columns.meta_ids is None else pack_ints(columns.meta_ids)
    sections = (
        pack_strings(columns.metas),
        ids,
        arrivals,
        keys,
        groups,
        b"",
        *_encode_times(columns),
    )
    # One join of everything: the payloads are copied only once.
    content = b"\n".join([_join_sections(sections), *payloads])
    if content.count(b"\n", len(content) - raw - count) != count:
        flags |= _LENGTHS_FLAG
        sections = (*sections[:5], pack_ints(columns.lengths), *sections[6:])
        content = b"".join([_join_sections(sections), b"\n", *payloads])
    last = first + int(relative.max())
    version = VERSION if len(sections) == _UNTIMED_SECTION_COUNT else TIMED_VERSION
    return _build_pack(version, flags, Header(count, raw, first, last, columns.key_id), content)


def _encode_times(columns: PackColumns) -> tuple[bytes, ...]:
    """Return the sections of event times, if there is anything to say of them."""
    if columns.max_times is None and columns.times is None:
        return ()
    times = b"" if columns.times is None else _pack_times(columns.times)
    newest = b"" if columns.max_times is None else _pack_times(columns.max_times)
    lags = b"" if columns.lags is None else pack_deltas(columns.lags)
    return newest, times, lags


def _pack_times(times: Ints) -> bytes:
    """Write event times: the least, then how far the others are from it."""
    least = times.min()
    # As unsigned numbers: two times may lie more than an int64 apart.
    beyond = times.astype(np.uint64) - np.uint64(int(least) % _UINT64_RANGE)
    return int(least).to_bytes(8, "little", signed=True) + pack_deltas(beyond)


def _unpack_times(data: bytes) -> Ints | None:
    if not data:
        return None
    least = np.int64(int.from_bytes(data[:8], "little", signed=True))
    times: Ints = unpack_deltas(data[8:]) + least
    return times


def encode_aggregated(header: Header, content: bytes, paired: bool) -> bytes:
    """Write a pack of aggregated groups.

    Args:
        header: its header.
        content: what it holds.
        paired: whether the keys stand before their payloads.
    """
    flags = 0 if header.key_id is None else _KEYED_FLAG
    return _build_pack(PAIRED_VERSION if paired else AGGREGATED_VERSION, flags, header, content)


def _build_pack(version: int, flags: int, header: Header, content: bytes) -> bytes:
    frame: bytes = _make_codec().compress(content, asbytes=True)
    count, raw, first, last, key_id, _ = header
    size, checksum = len(content), zlib.crc32(frame)
    front = (version, flags, count, raw, first, last, key_id or 0, size, checksum)
    return _HEADER_STRUCT.pack(*front) + frame


def _join_sections(sections: Sequence[bytes]) -> bytes:
    lengths = (
        _SECTIONS_STRUCT if len(sections) == _UNTIMED_SECTION_COUNT else _TIMED_SECTIONS_STRUCT
    )
    return b"".join((lengths.pack(*map(len, sections)), *sections))


def read_header(body: PackBytes) -> Header:
    """Read the header of a pack.

    Raises:
        PackError: it is no pack, or of an unknown version.
    """
    version, flags, count, raw, first, last, key_id, _, _ = _unpack_header(body)
    keyed = key_id if flags & _KEYED_FLAG else None
    return Header(count, raw, first, last, keyed, version in _AGGREGATED_VERSIONS)


def read_aggregated(body: PackBytes) -> tuple[Header, bytes]:
    """Read the header and the content of a pack of aggregated groups.

    Raises:
        PackError: the pack is damaged or of an unknown version.
    """
    return read_header(body), _decompress(body)


def _decompress(body: PackBytes) -> bytes:
    _, _, count, _, _, _, _, size, checksum = _unpack_header(body)
    frame = memoryview(body)[_HEADER_STRUCT.size :]
    if zlib.crc32(frame) != checksum:
        raise PackError(
            f"a window's pack of {count} messages is damaged: its checksum does not fit; "
            "restore the checkpoint from a copy, or start from another one"
        )
    content: bytes = _make_codec().decompress(frame, size, asbytes=True)
    return content


class Pack:
    """A pack, unpacked: its columns are at hand, its payloads are cut out when asked for.

    Attributes:
        header: as `peek` gives it, with the arrivals shifted.
        arrivals: by message, shifted.
        metas: distinct metadata, as `encode_meta` writes it.
        meta_ids: by message; None when all have metas[0].
        starts: by group, the index of its first message; one more at the end.
        max_times: by group (one when it is not keyed), the largest event time, ns; or None.
        times: by message, its event time, ns; or None.
        lags: by message, how far the clock before it was beyond its event time; None for nowhere.
    """

    __slots__ = (
        "header",
        "arrivals",
        "metas",
        "meta_ids",
        "starts",
        "max_times",
        "times",
        "lags",
        "_names",
        "_keys",
        "_content",
        "_cuts",
        "_by_length",
    )

    def __init__(self, body: PackBytes, shift: int = 0) -> None:
        """Unpack.

        Args:
            body: what `encode` wrote.
            shift: what is added to every arrival number.

        Raises:
            PackError: the pack is damaged or of an unknown version.
        """
        version, flags, count, raw, first, last, key_id, _, _ = _unpack_header(body)
        content = _decompress(body)
        layout = _TIMED_SECTIONS_STRUCT if version == TIMED_VERSION else _SECTIONS_STRUCT
        position = layout.size
        sections = []
        for length in layout.unpack_from(content):
            sections.append(content[position : position + length])
            position += length
        position += 1
        metas, ids, arrivals, keys, groups, lengths, *timed = sections
        newest, times, lags = timed or (b"", b"", b"")
        self.max_times = _unpack_times(newest)
        self.times = _unpack_times(times)
        self.lags = unpack_deltas(lags) if lags else None
        self._content = content
        first += shift
        self.header = Header(
            count, raw, first, last + shift, key_id if flags & _KEYED_FLAG else None
        )
        self.metas = unpack_strings(metas)
        self.meta_ids = unpack_ints(ids) if ids else None
        steps = (
            unpack_deltas(arrivals) if flags & _ARRIVALS_FLAG else np.arange(count, dtype=np.int64)
        )
        self.arrivals = steps + first
        self._names = keys if flags & _KEYED_FLAG else b""
        self._keys: list[bytes] | None = None
        self.starts = [0, count]
        # Where the content is cut: at every payload when their lengths are known, else at every
        # group, one beyond the newline that follows it.
        self._by_length = bool(flags & _LENGTHS_FLAG)
        self._cuts = [position, len(content) + 1]
        if flags & _KEYED_FLAG:
            counts, sizes = map(unpack_ints, _split_pair(groups))
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
        return unpack_string_column(self._names) if self._names else pa.array([], pa.binary())

    def payloads(self) -> list[bytes]:
        """Cut out the payloads of all messages."""
        return self._cut_payloads(0, len(self.starts) - 1)

    @property
    def has_event_times(self) -> bool:
        """Whether the largest event time of its groups is known."""
        return self.max_times is not None or self.times is not None

    def group_max_times(self) -> Ints | None:
        """Return by group (one when it is not keyed) the largest event time, ns, or None."""
        if self.max_times is None and self.times is not None:
            return np.maximum.reduceat(self.times, self.starts[:-1])
        return self.max_times

    def group_slice(self, index: int) -> slice:
        """Return where the messages of a group are in the columns."""
        return slice(self.starts[index], self.starts[index + 1])

    def group_payloads(self, index: int) -> list[bytes]:
        """Cut out the payloads of one group."""
        return self._cut_payloads(index, index + 1)

    def _cut_payloads(self, first: int, last: int) -> list[bytes]:
        cuts, content = self._cuts, self._content
        if not self._by_length:
            return content[cuts[first] : cuts[last] - 1].split(b"\n")
        span = range(self.starts[first], self.starts[last])
        return [content[cuts[i] : cuts[i + 1]] for i in span]


def _unpack_header(body: PackBytes) -> tuple[int, ...]:
    if len(body) < _HEADER_STRUCT.size:
        raise PackError(f"a window's pack is cut short: it has {len(body)} bytes")
    fields: tuple[int, ...] = _HEADER_STRUCT.unpack_from(body)
    versions = (VERSION, TIMED_VERSION, *_AGGREGATED_VERSIONS)
    check_format("a window's pack", fields[0], versions, PackError)
    return fields


def _make_codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=1)


def lengths_of(payloads: Sequence[bytes]) -> Ints:
    """Return the length of each payload."""
    return np.fromiter(map(len, payloads), np.int64, len(payloads))


def _join_pair(left: bytes, right: bytes) -> bytes:
    return len(left).to_bytes(4, "little") + left + right


def _split_pair(data: bytes) -> tuple[bytes, bytes]:
    start = 4 + int.from_bytes(data[:4], "little")
    return data[4:start], data[start:]
