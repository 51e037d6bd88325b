"""Open sessions as columns, and their encoding."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamer.core.errors import StreamerError
from streamer.window.keyed.columns.numbers import NumberColumn, concat_numbers
from streamer.window.settings.int_codec import (
    Bools,
    Ints,
    pack_ints,
    pack_strings,
    pack_times,
    unpack_ints,
    unpack_strings,
    unpack_times,
)
from streamer.window.state.layout import SESSION_BLOCK_VERSION
from streamer.window.state_store import check_format

_HEADER_STRUCT: Final = struct.Struct("<BIQI")
"""Version, number of sessions, bytes of the content, checksum of the frame."""
_EMPTY_INTS: Final = np.empty(0, np.int64)


@dataclass(slots=True)
class OpenSessions:
    """Sessions, as one column for each attribute.

    Attributes:
        keys: the key.
        starts: the first event time, ns.
        ends: the last event time, ns.
        firsts: the smallest arrival number.
        counts: number of messages.
        active: the running time at which the session got its last message, ns.
        payloads: the payload of the message that arrived first.
        metas: distinct metadata of these messages, as `encode_meta` writes it.
        meta_ids: by session, an index into `metas`.
        numbers: by aggregate, the states of the sessions.
    """

    keys: list[bytes]
    starts: Ints
    ends: Ints
    firsts: Ints
    counts: Ints
    active: Ints
    payloads: list[bytes]
    metas: list[bytes]
    meta_ids: Ints
    numbers: list[NumberColumn]

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def empty(cls, columns: int) -> OpenSessions:
        """Return an empty table with `columns` columns of numbers."""
        numbers = [NumberColumn(np.empty(0), np.empty(0, np.bool_)) for _ in range(columns)]
        none = _EMPTY_INTS
        return cls([], none, none, none, none, none, [], [], none, numbers)

    def take(self, indices: Ints) -> OpenSessions:
        """Return some sessions, by index."""
        return OpenSessions(
            select_items(self.keys, indices),
            self.starts[indices],
            self.ends[indices],
            self.firsts[indices],
            self.counts[indices],
            self.active[indices],
            select_items(self.payloads, indices),
            self.metas,
            self.meta_ids[indices],
            [column.take(indices) for column in self.numbers],
        )

    def split(self, some: Bools) -> tuple[OpenSessions, OpenSessions]:
        """Return the sessions in the mask `some`, and the others."""
        if not some.any():
            return OpenSessions.empty(len(self.numbers)), self
        if some.all():
            return self, OpenSessions.empty(len(self.numbers))
        return self.take(np.flatnonzero(some)), self.take(np.flatnonzero(~some))

    @property
    def size(self) -> int:
        """About how many bytes the sessions take."""
        texts = sum(map(len, self.keys)) + sum(map(len, self.payloads))
        return texts + 8 * (6 + len(self.numbers)) * len(self)


def select_items(values: list[Any], indices: Ints) -> list[Any]:
    """Return some values, by index."""
    if len(indices) < 2:
        return [values[place] for place in indices.tolist()]
    return list(itemgetter(*indices.tolist())(values))


def concat_sessions(parts: Sequence[OpenSessions]) -> OpenSessions:
    """Concatenate sessions; one part at least."""
    if len(parts) == 1:
        return parts[0]
    known: dict[bytes, int] = {}
    ids = [
        np.array([known.setdefault(meta, len(known)) for meta in part.metas], np.int64)[
            part.meta_ids
        ]
        for part in parts
    ]
    return OpenSessions(
        [key for part in parts for key in part.keys],
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.ends for part in parts]),
        np.concatenate([part.firsts for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.active for part in parts]),
        [payload for part in parts for payload in part.payloads],
        list(known),
        np.concatenate(ids),
        [
            concat_numbers(columns)
            for columns in zip(*(part.numbers for part in parts), strict=True)
        ],
    )


def encode_sessions(opened: OpenSessions) -> bytes:
    """Encode sessions, one at least."""
    used, ids = np.unique(opened.meta_ids, return_inverse=True)
    sections = [
        pack_strings(opened.keys),
        pack_times(opened.starts),
        pack_ints(opened.ends - opened.starts),
        pack_times(opened.firsts),
        pack_ints(opened.counts),
        pack_times(opened.active),
        pack_strings(opened.payloads),
        pack_strings(select_items(opened.metas, used)),
        pack_ints(ids.astype(np.int64)),
    ]
    for column in opened.numbers:
        planes = np.ascontiguousarray(column.values).view(np.uint8).reshape(-1, 8).T
        sections += [planes.tobytes(), np.packbits(column.whole).tobytes()]
    content = pack_strings(sections)
    frame: bytes = _make_codec().compress(content, asbytes=True)
    return (
        _HEADER_STRUCT.pack(SESSION_BLOCK_VERSION, len(opened), len(content), zlib.crc32(frame))
        + frame
    )


def decode_sessions(data: bytes) -> OpenSessions:
    """Decode sessions that `encode_sessions` wrote.

    Raises:
        StreamerError: the bytes are damaged, or a later version wrote them.
    """
    check_format("a block of a window's sessions", data[0], (SESSION_BLOCK_VERSION,))
    _, count, size, checksum = _HEADER_STRUCT.unpack_from(data)
    frame = memoryview(data)[_HEADER_STRUCT.size :]
    if zlib.crc32(frame) != checksum:
        raise StreamerError(
            f"a block of {count} sessions is damaged: its checksum does not fit; restore the "
            "checkpoint from a copy, or start from another one"
        )
    content: bytes = _make_codec().decompress(frame, size, asbytes=True)
    keys, starts, lengths, firsts, counts, active, payloads, metas, ids, *columns = unpack_strings(
        content
    )
    begun = unpack_times(starts)
    return OpenSessions(
        unpack_strings(keys),
        begun,
        begun + unpack_ints(lengths),
        unpack_times(firsts),
        unpack_ints(counts),
        unpack_times(active),
        unpack_strings(payloads),
        unpack_strings(metas),
        unpack_ints(ids),
        [
            _decode_numbers(values, whole, count)
            for values, whole in zip(columns[::2], columns[1::2], strict=True)
        ],
    )


def _decode_numbers(values: bytes, whole: bytes, count: int) -> NumberColumn:
    planes = np.frombuffer(values, np.uint8).reshape(8, -1)
    bits = np.unpackbits(np.frombuffer(whole, np.uint8), count=count)
    return NumberColumn(
        np.ascontiguousarray(planes.T).view(np.float64).ravel(), bits.astype(np.bool_)
    )


def _make_codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=1)
