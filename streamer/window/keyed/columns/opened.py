"""Open sessions as columns, and how they are written down."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamer.errors import StreamerError
from streamer.window.ints import (
    Ints,
    pack_ints,
    pack_strings,
    pack_times,
    unpack_ints,
    unpack_strings,
    unpack_times,
)
from streamer.window.keyed.columns.numbers import Bools, Numbers, joined
from streamer.window.versions import check_format

VERSION: Final = 1
_FRONT: Final = struct.Struct("<BIQI")
"""Version, sessions, bytes of the content, checksum of the frame."""
_NO_INTS: Final = np.empty(0, np.int64)


@dataclass(slots=True)
class Opened:
    """Sessions, by column.

    Attributes:
        keys: the key.
        starts: the first event time, ns.
        ends: the last one.
        firsts: the smallest arrival number.
        counts: messages.
        active: the running time at which the last message was taken, ns.
        payloads: of the message that arrived first.
        metas: distinct metadata of these messages, as `encode_meta` writes it.
        meta_ids: which of it that message has.
        numbers: what the parts of the mapping have come to.
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
    numbers: list[Numbers]

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def none(cls, columns: int) -> Opened:
        """Return no sessions; `columns` is how many columns of numbers they would have."""
        numbers = [Numbers(np.empty(0), np.empty(0, np.bool_)) for _ in range(columns)]
        none = _NO_INTS
        return cls([], none, none, none, none, none, [], [], none, numbers)

    def take(self, chosen: Ints) -> Opened:
        """Return some of them, by their places."""
        return Opened(
            picked(self.keys, chosen),
            self.starts[chosen],
            self.ends[chosen],
            self.firsts[chosen],
            self.counts[chosen],
            self.active[chosen],
            picked(self.payloads, chosen),
            self.metas,
            self.meta_ids[chosen],
            [column.take(chosen) for column in self.numbers],
        )

    def parted(self, some: Bools) -> tuple[Opened, Opened]:
        """Return those that are meant, and the others."""
        if not some.any():
            return Opened.none(len(self.numbers)), self
        if some.all():
            return self, Opened.none(len(self.numbers))
        return self.take(np.flatnonzero(some)), self.take(np.flatnonzero(~some))

    @property
    def size(self) -> int:
        """About how many bytes they hold."""
        texts = sum(map(len, self.keys)) + sum(map(len, self.payloads))
        return texts + 8 * (6 + len(self.numbers)) * len(self)


def picked(values: list[Any], chosen: Ints) -> list[Any]:
    """Return some values, by their places."""
    if len(chosen) < 2:
        return [values[place] for place in chosen.tolist()]
    return list(itemgetter(*chosen.tolist())(values))


def all_of(parts: Sequence[Opened]) -> Opened:
    """Return sessions as one, in their order; one part at least."""
    if len(parts) == 1:
        return parts[0]
    known: dict[bytes, int] = {}
    ids = [
        np.array([known.setdefault(meta, len(known)) for meta in part.metas], np.int64)[
            part.meta_ids
        ]
        for part in parts
    ]
    return Opened(
        [key for part in parts for key in part.keys],
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.ends for part in parts]),
        np.concatenate([part.firsts for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.active for part in parts]),
        [payload for part in parts for payload in part.payloads],
        list(known),
        np.concatenate(ids),
        [joined(columns) for columns in zip(*(part.numbers for part in parts), strict=True)],
    )


def encode(opened: Opened) -> bytes:
    """Write sessions, one at least."""
    used, ids = np.unique(opened.meta_ids, return_inverse=True)
    sections = [
        pack_strings(opened.keys),
        pack_times(opened.starts),
        pack_ints(opened.ends - opened.starts),
        pack_times(opened.firsts),
        pack_ints(opened.counts),
        pack_times(opened.active),
        pack_strings(opened.payloads),
        pack_strings(picked(opened.metas, used)),
        pack_ints(ids.astype(np.int64)),
    ]
    for column in opened.numbers:
        planes = np.ascontiguousarray(column.values).view(np.uint8).reshape(-1, 8).T
        sections += [planes.tobytes(), np.packbits(column.whole).tobytes()]
    content = pack_strings(sections)
    frame: bytes = _codec().compress(content, asbytes=True)
    return _FRONT.pack(VERSION, len(opened), len(content), zlib.crc32(frame)) + frame


def decode(data: bytes) -> Opened:
    """Read what `encode` wrote.

    Raises:
        StreamerError: it is damaged, or written by a later version.
    """
    check_format("a block of a window's sessions", data[0], (VERSION,))
    _, count, size, checksum = _FRONT.unpack_from(data)
    frame = memoryview(data)[_FRONT.size :]
    if zlib.crc32(frame) != checksum:
        raise StreamerError(
            f"a block of {count} sessions is damaged: its checksum does not fit; restore the "
            "checkpoint from a copy, or start from another one"
        )
    content: bytes = _codec().decompress(frame, size, asbytes=True)
    keys, starts, lengths, firsts, counts, active, payloads, metas, ids, *columns = unpack_strings(
        content
    )
    begun = unpack_times(starts)
    return Opened(
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
            _numbers(values, whole, count)
            for values, whole in zip(columns[::2], columns[1::2], strict=True)
        ],
    )


def _numbers(values: bytes, whole: bytes, count: int) -> Numbers:
    planes = np.frombuffer(values, np.uint8).reshape(8, -1)
    bits = np.unpackbits(np.frombuffer(whole, np.uint8), count=count)
    return Numbers(np.ascontiguousarray(planes.T).view(np.float64).ravel(), bits.astype(np.bool_))


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=1)
