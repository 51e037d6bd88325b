"""The rows of a table that a stream is joined with: of each key the newest, or several versions.

They lie in buckets by the hash of their key (`state.linear_hashing`). A micro-batch reads the
buckets of the keys that it meets, one after the other, and writes those that it has changed.

A version is valid from its time until that of the next one. With a history, one that was replaced
stays until no message can come that it is valid for. A version without a payload is a tombstone:
from its time on there is no row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from streamer.core.json.dump import dump_json
from streamer.window.keyed.state import FOREVER
from streamer.window.settings.int_codec import pack_ints, pack_strings, unpack_ints, unpack_strings
from streamer.window.state.layout import (
    TABLE_BUCKET_SEQ,
    TABLE_BUCKET_VERSION,
    TABLE_HEAD_KEY,
    TABLE_HEAD_VERSION,
)
from streamer.window.state.linear_hashing import bucket_of, split_source
from streamer.window.state_store import StateStore, check_format

_KEYS_PER_BUCKET: Final = 512
_MAX_SWEPT_BUCKETS: Final = 8
"""Buckets that a micro-batch reads for old rows beside those of its keys."""
_CODEC: Final = "zstd"
_SIZE_BYTES: Final = 8


class RowVersion(NamedTuple):
    """A version of a row.

    Attributes:
        time: its event time, ns.
        payload: its payload; None for a tombstone.
        meta: its metadata, as `encode_meta` wrote it.
    """

    time: int
    payload: bytes | None
    meta: bytes


class TableRow(NamedTuple):
    """The row of a key.

    Attributes:
        received: batch time at which its latest message came, ns.
        versions: its versions by time, one at least; of equal times, only the one that came last.
    """

    received: int
    versions: Sequence[RowVersion]


def find_version(versions: Sequence[RowVersion], time: int) -> RowVersion | None:
    """Return the version that is valid at a time, ns; None without one."""
    place = bisect_right(versions, time, key=_time_of)
    return versions[place - 1] if place else None


def insert_version(versions: Sequence[RowVersion], new: RowVersion) -> list[RowVersion]:
    """Return the versions with a new one, which replaces one of the same time."""
    place = bisect_left(versions, new.time, key=_time_of)
    after = place + (place < len(versions) and versions[place].time == new.time)
    return [*versions[:place], new, *versions[after:]]


def _time_of(version: RowVersion) -> int:
    return version.time


def _prune(versions: Sequence[RowVersion], cutoff: int) -> Sequence[RowVersion]:
    """Return the versions that are valid at a time, ns, or later; a tombstone alone is none."""
    first = max(bisect_right(versions, cutoff, key=_time_of) - 1, 0)
    if versions[first].payload is None and versions[first].time <= cutoff:
        first += 1
    return versions[first:]


def _prunable_at(versions: Sequence[RowVersion]) -> int:
    """Return the first cutoff that removes a version, ns; `FOREVER` for none."""
    if versions[0].payload is None:
        return versions[0].time
    return versions[1].time if len(versions) > 1 else FOREVER


class TableBucket:
    """The rows of some keys.

    Attributes:
        is_changed: whether it must be written.
        removed_count: how many versions were removed since it was read, by a later one or by age.
    """

    def __init__(self, data: bytes | None) -> None:
        """Decode what `encode` wrote; None for an empty bucket.

        Raises:
            StreamerError: another version of the program wrote it.
        """
        self.is_changed = False
        self.removed_count = 0
        self._rows: dict[bytes, TableRow] = {}
        self.count_before = self.versions_before = self.size_before = 0
        if data is not None:
            check_format("the rows of a joined table", data[0], (TABLE_BUCKET_VERSION,))
            self._decode(data)
            self.count_before, self.versions_before = len(self._rows), self.version_count
            self.size_before = self.size

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def version_count(self) -> int:
        """Number of versions of all rows."""
        return sum(len(row.versions) for row in self._rows.values())

    @property
    def size(self) -> int:
        """Bytes of the payloads."""
        return sum(
            len(version.payload or b"") for row in self._rows.values() for version in row.versions
        )

    @property
    def first_received(self) -> int:
        """Batch time at which the longest known of the rows came, ns."""
        return min(row.received for row in self._rows.values())

    @property
    def prunable_at(self) -> int:
        """The first cutoff that removes a version, ns; `FOREVER` for none."""
        return min(_prunable_at(row.versions) for row in self._rows.values())

    def versions_of(self, key: bytes) -> Sequence[RowVersion]:
        """Return the versions of the row of a key; none if there is no row."""
        row = self._rows.get(key)
        return () if row is None else row.versions

    def put(self, key: bytes, versions: Sequence[RowVersion], received: int) -> None:
        """Replace the versions of the row of a key; without any, the row is removed."""
        self.is_changed = True
        if versions:
            self._rows[key] = TableRow(received, versions)
        else:
            self._rows.pop(key, None)

    def remove_received_before(self, time: int) -> None:
        """Remove rows whose latest message came before a batch time, ns."""
        for key in [key for key, row in self._rows.items() if row.received < time]:
            self.removed_count += len(self._rows.pop(key).versions)
            self.is_changed = True

    def prune(self, cutoff: int) -> None:
        """Remove versions that have been replaced by a time, ns."""
        for key, row in list(self._rows.items()):
            if _prunable_at(row.versions) <= cutoff:
                left = _prune(row.versions, cutoff)
                self.removed_count += len(row.versions) - len(left)
                self.put(key, left, row.received)

    def iterate_rows(self) -> Iterator[tuple[bytes, TableRow]]:
        """Give all rows, each with its key."""
        yield from self._rows.items()

    def take_keys(self, keys: Iterable[bytes], source: TableBucket) -> None:
        """Take the rows of some keys from another bucket."""
        for key in keys:
            self._rows[key] = source._rows.pop(key)
        self.is_changed = source.is_changed = True

    def encode(self) -> bytes:
        """Encode the bucket."""
        rows = self._rows.values()
        versions = [version for row in rows for version in row.versions]
        metas = {version.meta: 0 for version in versions}
        for number, meta in enumerate(metas):
            metas[meta] = number
        sections = (
            pack_strings(list(self._rows)),
            np.array([row.received for row in rows], np.int64).tobytes(),
            pack_ints(np.array([len(row.versions) for row in rows], np.int64)),
            np.array([version.time for version in versions], np.int64).tobytes(),
            np.array([version.payload is None for version in versions], np.bool_).tobytes(),
            pack_strings([version.payload or b"" for version in versions]),
            pack_strings(list(metas)),
            pack_ints(np.array([metas[version.meta] for version in versions], np.int64)),
        )
        content = b"".join(len(one).to_bytes(_SIZE_BYTES, "little") + one for one in sections)
        front = bytes([TABLE_BUCKET_VERSION]) + len(content).to_bytes(_SIZE_BYTES, "little")
        frame: bytes = pa.compress(content, codec=_CODEC, asbytes=True)
        return front + frame

    def _decode(self, data: bytes) -> None:
        size = int.from_bytes(data[1 : 1 + _SIZE_BYTES], "little")
        frame = memoryview(data)[1 + _SIZE_BYTES :]
        content: bytes = pa.decompress(frame, decompressed_size=size, codec=_CODEC, asbytes=True)
        keys, received, counts, times, deleted, payloads, metas, meta_ids = _split(content)
        of_version = unpack_strings(metas)
        versions = list(
            map(
                RowVersion,
                np.frombuffer(times, np.int64).tolist(),
                unpack_strings(payloads),
                map(of_version.__getitem__, unpack_ints(meta_ids).tolist()),
            )
        )
        for place in np.flatnonzero(np.frombuffer(deleted, np.bool_)).tolist():
            versions[place] = versions[place]._replace(payload=None)
        ends = np.cumsum(unpack_ints(counts)).tolist()
        starts = [0, *ends[:-1]]
        self._rows = {
            key: TableRow(at, versions[start:end])
            for key, at, start, end in zip(
                unpack_strings(keys),
                np.frombuffer(received, np.int64).tolist(),
                starts,
                ends,
                strict=True,
            )
        }


def _split(content: bytes) -> Iterator[bytes]:
    """Give the sections of a bucket."""
    at = 0
    while at < len(content):
        start = at + _SIZE_BYTES
        at = start + int.from_bytes(content[at:start], "little")
        yield content[start:at]


class TableRows:
    """All rows of a shard.

    Attributes:
        key_count: number of keys that have a row.
        version_count: number of versions.
        byte_count: bytes of their payloads.
        released_count: how many versions were removed in this micro-batch.
    """

    def __init__(self, store: StateStore, ttl: int | None) -> None:
        """Read the head of the rows.

        Args:
            store: the shard's state.
            ttl: ns of batch time after which a row is removed that has not come anew; None for
                never.

        Raises:
            StreamerError: a later version of the program wrote it.
        """
        self._store = store
        self._ttl = ttl
        self.released_count = 0
        self.key_count = self.version_count = self.byte_count = 0
        self._bucket_count = 1
        # By number of a bucket that is not empty: when its first row was received, and the first
        # cutoff that removes a version.
        self._dues: dict[int, list[int]] = {}
        self._head_before = data = store.get(*TABLE_HEAD_KEY)
        if data is not None:
            fields: dict[str, Any] = orjson.loads(data)
            check_format("the head of a joined table", fields["version"], (TABLE_HEAD_VERSION,))
            self._bucket_count, self.key_count = fields["buckets"], fields["keys"]
            self.version_count, self.byte_count = fields["versions"], fields["bytes"]
            self._dues = {number: dues for number, *dues in fields["dues"]}

    def group_by_bucket(self, keys: Iterable[bytes]) -> list[tuple[int, list[bytes]]]:
        """Return keys by the number of their bucket, in order."""
        by_bucket: dict[int, list[bytes]] = {}
        for key in keys:
            by_bucket.setdefault(bucket_of(key, self._bucket_count), []).append(key)
        return sorted(by_bucket.items())

    def load(self, number: int, now: int) -> TableBucket:
        """Read a bucket, without the rows that have expired by a batch time, ns."""
        known = number in self._dues
        bucket = TableBucket(self._store.get(number, TABLE_BUCKET_SEQ) if known else None)
        if self._ttl is not None:
            bucket.remove_received_before(now - self._ttl + 1)
        return bucket

    def save(self, number: int, bucket: TableBucket, cutoff: int | None) -> None:
        """Write a bucket if it has changed.

        Args:
            number: of the bucket.
            bucket: the bucket.
            cutoff: versions that have been replaced by this time are removed, ns; None for none.
        """
        if cutoff is not None:
            bucket.prune(cutoff)
        self.released_count += bucket.removed_count
        if not bucket.is_changed:
            return
        self.key_count += len(bucket) - bucket.count_before
        self.version_count += bucket.version_count - bucket.versions_before
        self.byte_count += bucket.size - bucket.size_before
        if len(bucket):
            self._store.put(number, TABLE_BUCKET_SEQ, bucket.encode())
            self._dues[number] = [bucket.first_received, bucket.prunable_at]
        elif number in self._dues:
            self._store.delete(number, TABLE_BUCKET_SEQ)
            del self._dues[number]

    def finish(self, read: Iterable[int], now: int, cutoff: int | None) -> None:
        """End the micro-batch: remove old rows elsewhere, let the buckets grow, write the head.

        Args:
            read: the buckets that the micro-batch has read.
            now: batch time, ns.
            cutoff: as in `save`.
        """
        expired = None if self._ttl is None else now - self._ttl
        done = set(read)
        old = [
            number
            for number, (received, prunable_at) in sorted(self._dues.items())
            if number not in done
            and (
                (expired is not None and received <= expired)
                or (cutoff is not None and prunable_at <= cutoff)
            )
        ]
        for number in old[:_MAX_SWEPT_BUCKETS]:
            self.save(number, self.load(number, now), cutoff)
        while self.key_count > _KEYS_PER_BUCKET * self._bucket_count:
            self._split_next(now)
        self._write_head()

    def insert(self, rows: Iterable[tuple[bytes, TableRow]]) -> None:
        """Add rows of keys that have none; `finish` must follow."""
        by_key = dict(rows)
        for number, keys in self.group_by_bucket(by_key):
            bucket = self.load(number, 0)
            for key in keys:
                bucket.put(key, by_key[key].versions, by_key[key].received)
            self.save(number, bucket, None)

    def iterate_buckets(self) -> Iterator[TableBucket]:
        """Give all buckets that are not empty, as they are stored."""
        for number in sorted(self._dues):
            yield TableBucket(self._store.get(number, TABLE_BUCKET_SEQ))

    def _split_next(self, now: int) -> None:
        """Add a bucket, and give it its part of the one whose turn it is."""
        new = self._bucket_count
        old = split_source(new)
        self._bucket_count += 1
        source, target = self.load(old, now), TableBucket(None)
        keys = [key for key, _ in source.iterate_rows()]
        target.take_keys([key for key in keys if bucket_of(key, new + 1) == new], source)
        self.save(old, source, None)
        self.save(new, target, None)

    def _write_head(self) -> None:
        fields = {
            "version": TABLE_HEAD_VERSION,
            "buckets": self._bucket_count,
            "keys": self.key_count,
            "versions": self.version_count,
            "bytes": self.byte_count,
            "dues": [[number, *dues] for number, dues in self._dues.items()],
        }
        data = dump_json(fields)
        if data != self._head_before:
            self._store.put(*TABLE_HEAD_KEY, data)
