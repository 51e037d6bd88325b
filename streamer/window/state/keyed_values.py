"""Values that a pipeline keeps of each key, in the state of the key's shard.

They lie in buckets by a hash of the key. A micro-batch loads the buckets of the keys that it
meets, decodes in them only the records that it needs, and writes what it has changed when it ends.
The buckets grow one by one with the number of keys (linear hashing), so that no micro-batch has to
write all of them anew.

A value expires by the clock of the state: the largest time that a batch of the shard has had. All
decisions follow from that clock and from what was kept, so that a replay makes them again.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, Final

import numpy as np
import orjson

from streamer.core.errors import MessageError
from streamer.core.json.dump import dump_json
from streamer.core.keyed_state import MISSING
from streamer.window.aggregate.value_codec import dump_value, load_value
from streamer.window.settings.int_codec import pack_strings, unpack_strings
from streamer.window.state.layout import (
    KEYED_VALUES_HEAD_KEY,
    KEYED_VALUES_HEAD_VERSION,
    KEYED_VALUES_SEQ,
    KEYED_VALUES_VERSION,
)
from streamer.window.state_store import StateStore, check_format, dump_state_json, load_state_json

_NEVER_EXPIRES: Final = (1 << 63) - 1
_BEFORE_ALL_TIMES: Final = -(1 << 63)
_KEYS_PER_BUCKET: Final = 1024
_MAX_SWEPT_BUCKETS: Final = 8
"""Buckets that a micro-batch looks through for expired keys beside those that it has loaded."""

_KEY_LENGTH: Final = struct.Struct("<I")
_HASH_FACTOR: Final = 0x9E3779B1
"""Spreads the bits of a key's checksum, of which the lowest have chosen the shard."""

_PLAIN_TYPES: Final = frozenset((str, bool, type(None)))
_MIN_INT64: Final = -(1 << 63)

_Value = list[Any]
"""When a value expires, ns of the state's clock, and the value."""

_Record = dict[str, _Value]
"""The values of a key, by name."""


class KeyedValues:
    """The values of all keys of a shard (`core.keyed_state.KeyedState`); one for a micro-batch.

    >>> from streamer.window.state_store import DictStore
    >>> store = DictStore()
    >>> values = KeyedValues(store, ttl=60)
    >>> values.begin(b'"ann"', 1000)
    >>> values.put("visits", 1)
    >>> values.commit()
    >>> values = KeyedValues(store, ttl=60)
    >>> values.begin(b'"ann"', 1059)
    >>> values.get("visits")
    1
    >>> values.begin(b'"ann"', 1060)
    >>> values.get("visits") is MISSING
    True

    Attributes:
        scope: as `KeyedState` has it.
        clock: likewise; the largest time of the shard where `begin` is given none.
    """

    def __init__(self, store: StateStore, ttl: int | None) -> None:
        """Read the head of the values.

        Args:
            store: the shard's state.
            ttl: ns after which a value expires that was not kept anew; None for never.

        Raises:
            StreamerError: a later version of the program has written it.
        """
        self.scope = ""
        self._ttl = ttl
        self._head = head = _Head.read(store)
        self._buckets = _Buckets(store, head)
        self.clock = head.clock
        self._key: bytes | None = None
        self._place: tuple[bytes, str] | None = None
        self._record: _Record = {}

    @property
    def key_count(self) -> int:
        """Number of keys of which there are values; a part of a key is one of its own."""
        return self._head.key_count

    @property
    def byte_count(self) -> int:
        """Bytes of the values."""
        return self._head.byte_count

    def begin(self, key: bytes | None, time: int | None) -> None:
        """Go on to the batch of a key.

        Args:
            key: as the buffer encodes it; None for the one key of a stream without keys.
            time: of the batch, Unix ns; None for the time of the batches before it.
        """
        self._key = b"" if key is None else key
        self._place = None
        base = self._head.start_clock
        self.clock = self._head.clock if time is None else max(time, base)
        self._head.clock = max(self._head.clock, self.clock)

    def suspend(self) -> None:
        """Go on to a batch that has no key: nothing can be kept of it."""
        self._key = None
        self._place = None

    def preload(self, keys: Iterable[bytes | None]) -> None:
        """Load what is kept of keys, so that the store is not asked for it later."""
        for key in keys:
            self._buckets.load_of(_encode_key(b"" if key is None else key, ""))

    def get(self, name: str, part: str = "") -> Any:
        """Return a value; see `KeyedState.get`."""
        entry = self._find_record(part).get(name)
        if entry is None or entry[0] <= self.clock:
            return MISSING
        return entry[1]

    def put(self, name: str, value: Any, part: str = "", keep: int | None = None) -> None:
        """Keep a value; see `KeyedState.put`."""
        record = self._find_record(part)
        assert self._key is not None
        if value is MISSING:
            record.pop(name, None)
        else:
            ttl = self._ttl if keep is None else keep
            expires = _NEVER_EXPIRES if ttl is None else min(self.clock + ttl, _NEVER_EXPIRES - 1)
            record[name] = [expires, value]
        self._buckets.mark_changed(_encode_key(self._key, part))

    def commit(self) -> None:
        """Remove what has expired, and write what has changed; the micro-batch has ended."""
        self._place = None
        self._buckets.commit()
        self._head.write()

    def _find_record(self, part: str) -> _Record:
        if self._key is None:
            raise MessageError(
                "the message has no key to keep state by: it failed before it got one"
            )
        if self._place != (self._key, part):
            self._record = self._buckets.open_record(_encode_key(self._key, part))
            self._place = self._key, part
        return self._record


class _Head:
    """The head of all buckets: their number, their names, their clock; its JSON is in `write`."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self.is_written = False
        self.clock = self.start_clock = _BEFORE_ALL_TIMES
        self.bucket_count = 1
        self.key_count = 0
        self.byte_count = 0
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        # By number of a bucket that is not empty, when the first of its keys expires.
        self.dues: dict[int, int] = {}
        self._before = b""

    @classmethod
    def read(cls, store: StateStore) -> _Head:
        """Read the head; a new one if there is none."""
        head = cls(store)
        data = store.get(*KEYED_VALUES_HEAD_KEY)
        if data is None:
            return head
        fields: dict[str, Any] = orjson.loads(data)
        check_format("the state by key", fields["version"], (KEYED_VALUES_HEAD_VERSION,))
        head.clock = head.start_clock = fields["clock"]
        head.bucket_count, head.key_count = fields["buckets"], fields["keys"]
        head.byte_count, head.names = fields["bytes"], fields["names"]
        head.numbers = {name: number for number, name in enumerate(head.names)}
        head.dues = dict(fields["dues"])
        head._before = data
        return head

    def write(self) -> None:
        """Write the head if it has changed."""
        data = dump_json(
            {
                "version": KEYED_VALUES_HEAD_VERSION,
                "clock": self.clock,
                "buckets": self.bucket_count,
                "keys": self.key_count,
                "bytes": self.byte_count,
                "names": self.names,
                "dues": list(self.dues.items()),
            }
        )
        if data != self._before and (self._before or self.numbers):
            self._store.put(*KEYED_VALUES_HEAD_KEY, data)

    def number_of(self, name: str) -> int:
        """Return the number that stands for a name."""
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.names)
            self.names.append(name)
        return number

    def bucket_of(self, key: bytes) -> int:
        """Return the number of the bucket of a key."""
        hashed = (zlib.crc32(key) * _HASH_FACTOR & 0xFFFFFFFF) >> 8
        whole = 1 << (self.bucket_count.bit_length() - 1)
        number = hashed & (2 * whole - 1)
        return number if number < self.bucket_count else number & (whole - 1)


class _Bucket:
    """The records of some keys, as bytes until they are needed."""

    def __init__(self, data: bytes | None) -> None:
        self.records: dict[bytes, bytes | _Record] = {}
        self.dues: dict[bytes, int] = {}
        self.is_changed = False
        self.size_before = self.count_before = 0
        if data is None:
            return
        check_format("the state by key", data[0], (KEYED_VALUES_VERSION,))
        count = int.from_bytes(data[1:5], "little")
        end = 5 + 8 * count
        dues = np.frombuffer(data[5:end], np.int64).tolist()
        split = end + 4 + int.from_bytes(data[end : end + 4], "little")
        keys = unpack_strings(data[end + 4 : split])
        records: list[bytes] = unpack_strings(data[split:])
        self.records = dict(zip(keys, records, strict=True))
        self.dues = dict(zip(keys, dues, strict=True))
        self.size_before, self.count_before = sum(map(len, records)), count

    def encode(self, head: _Head) -> bytes:
        """Encode the bucket; what is decoded is written anew, without what has expired."""
        for key, record in list(self.records.items()):
            if type(record) is dict:
                self._close_record(key, record, head)
        keys = list(self.records)
        names = pack_strings(keys)
        dues = np.array([self.dues[key] for key in keys], np.int64).tobytes()
        front = bytes([KEYED_VALUES_VERSION]) + len(keys).to_bytes(4, "little") + dues
        records: list[bytes] = list(self.records.values())  # type: ignore[arg-type]
        return front + len(names).to_bytes(4, "little") + names + pack_strings(records)

    def _close_record(self, key: bytes, record: _Record, head: _Head) -> None:
        left = {name: entry for name, entry in record.items() if entry[0] > head.clock}
        if not left:
            del self.records[key]
            self.dues.pop(key, None)
            return
        self.records[key] = dump_state_json(
            [
                [
                    head.number_of(name),
                    None if expires == _NEVER_EXPIRES else expires,
                    _dump_value(value),
                ]
                for name, (expires, value) in left.items()
            ]
        )
        self.dues[key] = max(expires for expires, _ in left.values())

    def open_record(self, key: bytes, names: Sequence[str]) -> _Record:
        """Return the values of a key, decoded; they may be changed."""
        record = self.records.get(key, b"")
        if type(record) is bytes:
            record = self.records[key] = _decode_record(record, names)
        return record  # type: ignore[return-value]

    def remove_expired(self, clock: int) -> None:
        """Remove keys of which all has expired."""
        for key in [key for key, due in self.dues.items() if due <= clock]:
            self.is_changed = True  # what is decoded is looked at when it is encoded
            if type(self.records[key]) is bytes:
                del self.records[key], self.dues[key]


class _Buckets:
    """All buckets of a shard, loaded as they are needed."""

    def __init__(self, store: StateStore, head: _Head) -> None:
        self._store = store
        self._head = head
        self._loaded: dict[int, _Bucket] = {}

    def load_of(self, key: bytes) -> _Bucket:
        """Return the bucket of a key."""
        return self.load(self._head.bucket_of(key))

    def load(self, number: int) -> _Bucket:
        """Return a bucket."""
        bucket = self._loaded.get(number)
        if bucket is None:
            known = number in self._head.dues
            data = self._store.get(number, KEYED_VALUES_SEQ) if known else None
            bucket = self._loaded[number] = _Bucket(data)
        return bucket

    def open_record(self, key: bytes) -> _Record:
        """Return the values of a key, which may be changed."""
        return self.load_of(key).open_record(key, self._head.names)

    def mark_changed(self, key: bytes) -> None:
        """Note that the values of a key are to be written."""
        self.load_of(key).is_changed = True

    def iterate_records(self) -> Iterator[tuple[bytes, _Record]]:
        """Give all records; afterwards all buckets are loaded."""
        for number in sorted(self._head.dues):
            bucket = self.load(number)
            for key in list(bucket.records):
                yield key, bucket.open_record(key, self._head.names)

    def commit(self) -> None:
        """Remove what has expired, let the buckets grow, and write what has changed."""
        self._sweep()
        for number in sorted(self._loaded):
            self._save(number)
        while self._head.key_count > _KEYS_PER_BUCKET * self._head.bucket_count:
            self._split()
        self._loaded.clear()

    def _sweep(self) -> None:
        clock = self._head.clock
        due = sorted(number for number, first in self._head.dues.items() if first <= clock)
        others = [number for number in due if number not in self._loaded]
        for number in others[:_MAX_SWEPT_BUCKETS]:
            self.load(number)
        for bucket in self._loaded.values():
            bucket.remove_expired(clock)

    def _save(self, number: int) -> None:
        bucket, head = self._loaded[number], self._head
        if not bucket.is_changed:
            return
        data = bucket.encode(head)
        records: list[bytes] = list(bucket.records.values())  # type: ignore[arg-type]
        size = sum(map(len, records))
        head.key_count += len(records) - bucket.count_before
        head.byte_count += size - bucket.size_before
        bucket.count_before, bucket.size_before, bucket.is_changed = len(records), size, False
        if records:
            self._store.put(number, KEYED_VALUES_SEQ, data)
            head.dues[number] = min(bucket.dues.values())
        elif number in head.dues:
            self._store.delete(number, KEYED_VALUES_SEQ)
            del head.dues[number]

    def _split(self) -> None:
        """Add a bucket, and give it its part of the one whose turn it is."""
        head = self._head
        new = head.bucket_count
        old = new - (1 << (new.bit_length() - 1))
        source = self.load(old)
        head.bucket_count += 1
        target = self._loaded[new] = _Bucket(None)
        for key in [key for key in source.records if head.bucket_of(key) == new]:
            target.records[key] = source.records.pop(key)
            if key in source.dues:
                target.dues[key] = source.dues.pop(key)
        source.is_changed = target.is_changed = True
        self._save(old)
        self._save(new)


def _decode_record(data: bytes, names: Sequence[str]) -> _Record:
    if not data:
        return {}
    return {
        names[number]: [_NEVER_EXPIRES if expires is None else expires, _load_value(value)]
        for number, expires, value in load_state_json(data)
    }


def _dump_value(value: Any) -> Any:
    """Return a value as one of JSON: arrays and objects of plain values in a list of their own."""
    if type(value) in (list, dict) and _is_plain(value):
        return [value, True]
    return dump_value(value)


def _load_value(plain: Any) -> Any:
    if type(plain) is list and len(plain) > 1:
        return plain[0]
    return load_value(plain)


def _is_plain(value: Any) -> bool:
    """Return whether JSON keeps a value exactly as it is."""
    kind = type(value)
    if kind is list:
        return all(map(_is_plain, value))
    if kind is dict:
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    if kind is int:
        return bool(_MIN_INT64 <= value <= _NEVER_EXPIRES)
    return kind in _PLAIN_TYPES or (kind is float and isfinite(value))


def _encode_key(key: bytes, part: str) -> bytes:
    return _KEY_LENGTH.pack(len(key)) + key + part.encode(errors="surrogatepass")


def _decode_key(encoded: bytes) -> bytes:
    """Return the key of the buffer, without the part within it."""
    end = _KEY_LENGTH.size + _KEY_LENGTH.unpack_from(encoded)[0]
    return encoded[_KEY_LENGTH.size : end]


def rescale_keyed_values(
    shard_of: Callable[[bytes], int], stores: Sequence[StateStore], into: Sequence[StateStore]
) -> None:
    """Distribute the values over other shards: those of a key go where its messages go.

    Args:
        shard_of: gives the shard of a key.
        stores: by shard, its state; they are left as they are.
        into: by shard, the state that there is to be.
    """
    heads = [_Head(store) for store in into]
    targets = [_Buckets(store, head) for store, head in zip(into, heads, strict=True)]
    for store in stores:
        head = _Head.read(store)
        for target in heads:
            target.clock = max(target.clock, head.clock)
        for key, record in _Buckets(store, head).iterate_records():
            bucket = targets[shard_of(_decode_key(key))].load_of(key)
            bucket.records[key], bucket.is_changed = record, True
    for head, buckets in zip(heads, targets, strict=True):
        buckets.commit()
        head.write()
