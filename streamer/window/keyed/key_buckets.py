"""Key buckets: the records of keys, many to a value of the state, by the hash of the key.

A micro-batch that touches ten thousand of a million keys must not call the store ten thousand
times, and must not hold a million records: it loads one bucket after another, and decodes in each
only the records that it needs. The number of buckets grows with the number of keys.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, KeysView
from typing import Final

import numpy as np

from streamer.window.keyed.state import FOREVER, KeyState
from streamer.window.settings.int_codec import Ints, pack_strings, unpack_strings
from streamer.window.state.layout import KEY_BUCKET_SEQ, KEY_BUCKET_VERSION
from streamer.window.state_store import StateStore, check_format

_KEYS_PER_BUCKET: Final = 4096
_MAX_BUCKETS: Final = 4096
_DUE_CLOCKS: Final = 3
_BEFORE_ANY_DUE: Final = -(1 << 70)

Dues = tuple[int, int, int]
"""When a key is due without messages, by three clocks: watermark, running time (for idle timeouts)
and batch time, ns; `FOREVER` for never."""

_as_dues: Callable[[list[int]], Dues] = tuple  # type: ignore[assignment]
NO_DUES: Final[Dues] = (FOREVER, FOREVER, FOREVER)


class KeyBucket:
    """The records of some keys; a record is decoded only when it is read."""

    def __init__(self, data: bytes | None) -> None:
        """Decode what `encode` wrote; None for an empty bucket.

        Raises:
            StreamerError: another version wrote it.
        """
        self._records: dict[bytes, bytes] = {}
        self._dues: dict[bytes, Dues] = {}
        if data is None:
            return
        check_format("the list of a window's keys", data[0], (KEY_BUCKET_VERSION,))
        count = int.from_bytes(data[1:5], "little")
        end = 5 + 8 * _DUE_CLOCKS * count
        dues = np.frombuffer(data[5:end], np.int64).reshape(count, _DUE_CLOCKS)
        split = end + 4 + int.from_bytes(data[end : end + 4], "little")
        keys = unpack_strings(data[end + 4 : split])
        self._records = dict(zip(keys, unpack_strings(data[split:]), strict=True))
        known = np.flatnonzero((dues != FOREVER).any(axis=1))
        if len(known) == count:
            self._dues = dict(zip(keys, map(_as_dues, dues.tolist()), strict=True))
        else:
            self._dues = {keys[place]: _as_dues(dues[place].tolist()) for place in known.tolist()}

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: bytes) -> KeyState:
        """Return the record of a key; a new one if there is none."""
        data = self._records.get(key)
        return KeyState() if data is None else KeyState.decode(data)

    def put(self, key: bytes, state: KeyState, dues: Dues) -> None:
        """Replace the record of a key; remove it if it is idle."""
        if state.is_idle:
            self._records.pop(key, None)
            self._dues.pop(key, None)
            return
        self._records[key] = state.encode()
        if dues == NO_DUES:
            self._dues.pop(key, None)
        else:
            self._dues[key] = dues

    def replace(self, key: bytes, state: KeyState) -> None:
        """Replace the record of a key, which is due as before."""
        self._records[key] = state.encode()

    def due_keys(self, clocks: Dues) -> list[bytes]:
        """Return the keys that are due by one of the three clocks."""
        clock, active, now = clocks
        return [
            key for key, (a, b, c) in self._dues.items() if a <= clock or b <= active or c <= now
        ]

    def earliest_dues(self) -> Dues:
        """Return when the first key is due, by each of the three clocks."""
        if not self._dues:
            return NO_DUES
        a, b, c = zip(*self._dues.values(), strict=True)
        return min(a), min(b), min(c)

    @property
    def size(self) -> int:
        """Bytes of all records."""
        return sum(map(len, self._records.values()))

    def keys(self) -> KeysView[bytes]:
        """Return all keys."""
        return self._records.keys()

    def iterate_records(self) -> Iterator[tuple[bytes, KeyState, Dues]]:
        """Give all records, each with its key and its dues."""
        for key in self._records:
            yield key, self.get(key), self._dues.get(key, NO_DUES)

    def split(self, bucket_count: int) -> dict[int, KeyBucket]:
        """Split the records into buckets, by number, for another number of buckets."""
        buckets: dict[int, KeyBucket] = {}
        for key, record in self._records.items():
            into = buckets.setdefault(bucket_of(key, bucket_count), KeyBucket(None))
            into._records[key] = record
            if key in self._dues:
                into._dues[key] = self._dues[key]
        return buckets

    def merge(self, other: KeyBucket) -> None:
        """Add the records of another bucket, which has other keys."""
        self._records.update(other._records)
        self._dues.update(other._dues)

    def encode(self) -> bytes:
        """Encode the bucket."""
        keys = list(self._records)
        dues: Ints = np.full((len(keys), _DUE_CLOCKS), FOREVER, np.int64)
        if self._dues:
            dues = np.array([self._dues.get(key, NO_DUES) for key in keys], np.int64)
        names = pack_strings(keys)
        front = bytes([KEY_BUCKET_VERSION]) + len(keys).to_bytes(4, "little") + dues.tobytes()
        size = len(names).to_bytes(4, "little")
        return front + size + names + pack_strings(list(self._records.values()))


class KeyBuckets:
    """All key buckets of a shard."""

    def __init__(
        self,
        store: StateStore,
        earliest_dues: dict[int, list[int]],
        count: int,
        keys: int,
        sizes: dict[int, int],
    ) -> None:
        """Open the buckets that the head of the shard's state lists.

        Args:
            store: the shard's state.
            earliest_dues: by the number of a non-empty bucket, `KeyBucket.earliest_dues`.
            count: number of buckets.
            keys: number of keys in them.
            sizes: by number, the bytes of a bucket's records, where known.
        """
        self._store = store
        self.earliest_dues = earliest_dues
        self.count = count
        self.keys = keys
        self.sizes = sizes

    def select_buckets(self, touched: Iterable[bytes], clocks: Dues) -> dict[int, list[bytes]]:
        """Return the buckets with touched or due keys, in order, and the touched keys in each.

        Args:
            touched: keys that have messages.
            clocks: the three clocks.
        """
        keys_by_bucket: dict[int, list[bytes]] = {}
        for key in touched:
            keys_by_bucket.setdefault(bucket_of(key, self.count), []).append(key)
        for number, least in self.earliest_dues.items():
            if any(due <= clock for due, clock in zip(least, clocks, strict=True)):
                keys_by_bucket.setdefault(number, [])
        return dict(sorted(keys_by_bucket.items()))

    def find_known(self, keys: Iterable[bytes]) -> list[bytes]:
        """Return those of some keys that have records."""
        if not self.earliest_dues:
            return []
        known: list[bytes] = []
        for number, some in self.select_buckets(
            keys, (_BEFORE_ANY_DUE, _BEFORE_ANY_DUE, _BEFORE_ANY_DUE)
        ).items():
            if some and number in self.earliest_dues:
                records = self.load(number).keys()
                known += [key for key in some if key in records]
        return known

    def insert(self, records: Iterable[tuple[bytes, KeyState, Dues]]) -> None:
        """Add records of keys that have none yet."""
        by_key = {key: (state, dues) for key, state, dues in records}
        for number, some in self.select_buckets(
            by_key, (_BEFORE_ANY_DUE, _BEFORE_ANY_DUE, _BEFORE_ANY_DUE)
        ).items():
            bucket = self.load(number)
            before = len(bucket)
            for key in some:
                bucket.put(key, *by_key[key])
            self.save(number, bucket, before)

    def load(self, number: int) -> KeyBucket:
        """Read a bucket."""
        return KeyBucket(
            self._store.get(number, KEY_BUCKET_SEQ) if number in self.earliest_dues else None
        )

    def save(self, number: int, bucket: KeyBucket, keys_before: int) -> None:
        """Write a bucket; `keys_before` is its number of keys when it was loaded."""
        self.keys += len(bucket) - keys_before
        if len(bucket):
            self._store.put(number, KEY_BUCKET_SEQ, bucket.encode())
            self.earliest_dues[number] = list(bucket.earliest_dues())
            self.sizes[number] = bucket.size
        elif number in self.earliest_dues:
            self._remove(number)

    def resize(self) -> None:
        """Double the buckets while they are full; halve them while they are nearly empty."""
        target = resize_count(self.count, self.keys)
        if target == self.count:
            return
        parts_by_bucket: dict[int, list[KeyBucket]] = {}
        for number in list(self.earliest_dues):
            for into, part in self.load(number).split(target).items():
                parts_by_bucket.setdefault(into, []).append(part)
            self._remove(number)
        self.count = target
        for number, parts in sorted(parts_by_bucket.items()):
            whole = parts[0]
            for part in parts[1:]:
                whole.merge(part)
            self.save(number, whole, len(whole))

    def _remove(self, number: int) -> None:
        self._store.delete(number, KEY_BUCKET_SEQ)
        del self.earliest_dues[number]
        self.sizes.pop(number, None)

    def iterate_buckets(self) -> Iterator[tuple[int, KeyBucket]]:
        """Give all non-empty buckets, in order."""
        for number in sorted(self.earliest_dues):
            yield number, self.load(number)


def resize_count(count: int, keys: int) -> int:
    """Return how many buckets there should be for a number of keys, given the present count."""
    while keys > _KEYS_PER_BUCKET * count and count < _MAX_BUCKETS:
        count *= 2
    while count > 1 and keys < _KEYS_PER_BUCKET * count // 8:
        count //= 2
    return count


def bucket_of(key: bytes, bucket_count: int) -> int:
    """Return the bucket of a key, by bits of its hash that did not choose the shard."""
    return (zlib.crc32(key) >> 20) % bucket_count
