"""Drawers: the records of keys, many to a value of the store, found by the hash of the key.

A micro-batch that touches ten thousand of a million keys must not call the store ten thousand
times, and must not hold a million records: it takes out one drawer after another, and reads in each
only the records that it needs. There are more drawers as there are more keys.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, KeysView
from typing import Final

import numpy as np

from streamer.errors import StreamerError
from streamer.window.ints import Ints, pack_strings, unpack_strings
from streamer.window.keyed.state import FOREVER, KeyState
from streamer.window.store import Store

SEQ: Final = -3
"""Seq of the drawers in the store; their pane is their number."""

VERSION: Final = 1
_ROOM: Final = 4096
_MOST: Final = 4096
_DUES: Final = 3
_NEVER: Final = -(1 << 70)

Dues = tuple[int, int, int]
"""When a record must be looked at though no message came: by the clock, by the running time in
which it was idle, by T; `FOREVER` for never."""

_dues: Callable[[list[int]], Dues] = tuple  # type: ignore[assignment]
NO_DUES: Final[Dues] = (FOREVER, FOREVER, FOREVER)


class Drawer:
    """Some records: those that were not asked for stay as they were written."""

    def __init__(self, data: bytes | None) -> None:
        """Read what `encoded` wrote; nothing for an empty one.

        Raises:
            StreamerError: it was written by a later version.
        """
        self._records: dict[bytes, bytes] = {}
        self._dues: dict[bytes, Dues] = {}
        if data is None:
            return
        if data[0] != VERSION:
            raise StreamerError(
                f"the records of a window's keys have format {data[0]}, and this program reads "
                f"format {VERSION}: run the version that wrote the checkpoint, or start from "
                "another one"
            )
        count = int.from_bytes(data[1:5], "little")
        end = 5 + 8 * _DUES * count
        dues = np.frombuffer(data[5:end], np.int64).reshape(count, _DUES)
        split = end + 4 + int.from_bytes(data[end : end + 4], "little")
        keys = unpack_strings(data[end + 4 : split])
        self._records = dict(zip(keys, unpack_strings(data[split:]), strict=True))
        known = np.flatnonzero((dues != FOREVER).any(axis=1))
        if len(known) == count:
            self._dues = dict(zip(keys, map(_dues, dues.tolist()), strict=True))
        else:
            self._dues = {keys[place]: _dues(dues[place].tolist()) for place in known.tolist()}

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: bytes) -> KeyState:
        """Return the record of a key, a new one if there is none."""
        data = self._records.get(key)
        return KeyState() if data is None else KeyState.decoded(data)

    def put(self, key: bytes, state: KeyState, dues: Dues) -> None:
        """Take a record, unless there is nothing to know of the key any more."""
        if state.idle:
            self._records.pop(key, None)
            self._dues.pop(key, None)
            return
        self._records[key] = state.encoded()
        if dues == NO_DUES:
            self._dues.pop(key, None)
        else:
            self._dues[key] = dues

    def due(self, clocks: Dues) -> list[bytes]:
        """Return the keys whose records must be looked at, by the three clocks."""
        clock, active, now = clocks
        return [
            key for key, (a, b, c) in self._dues.items() if a <= clock or b <= active or c <= now
        ]

    def least(self) -> Dues:
        """Return when the first record must be looked at, by each of the three clocks."""
        if not self._dues:
            return NO_DUES
        a, b, c = zip(*self._dues.values(), strict=True)
        return min(a), min(b), min(c)

    @property
    def size(self) -> int:
        """The bytes of all records."""
        return sum(map(len, self._records.values()))

    def keys(self) -> KeysView[bytes]:
        """Return all keys."""
        return self._records.keys()

    def records(self) -> Iterator[tuple[bytes, KeyState, Dues]]:
        """Give all records, each with its key and when it must be looked at."""
        for key in self._records:
            yield key, self.get(key), self._dues.get(key, NO_DUES)

    def split(self, drawers: int) -> dict[int, Drawer]:
        """Return the records by the number of the drawer they go to, of so many."""
        found: dict[int, Drawer] = {}
        for key, record in self._records.items():
            into = found.setdefault(number_of(key, drawers), Drawer(None))
            into._records[key] = record
            if key in self._dues:
                into._dues[key] = self._dues[key]
        return found

    def merge(self, other: Drawer) -> None:
        """Take the records of another drawer, which has other keys."""
        self._records.update(other._records)
        self._dues.update(other._dues)

    def encoded(self) -> bytes:
        """Write it down."""
        keys = list(self._records)
        dues: Ints = np.full((len(keys), _DUES), FOREVER, np.int64)
        if self._dues:
            dues = np.array([self._dues.get(key, NO_DUES) for key in keys], np.int64)
        names = pack_strings(keys)
        front = bytes([VERSION]) + len(keys).to_bytes(4, "little") + dues.tobytes()
        size = len(names).to_bytes(4, "little")
        return front + size + names + pack_strings(list(self._records.values()))


class Drawers:
    """All drawers of a shard."""

    def __init__(
        self,
        store: Store,
        least: dict[int, list[int]],
        count: int,
        keys: int,
        sizes: dict[int, int],
    ) -> None:
        """Take what the head of the shard's state knows of them.

        Args:
            store: the shard's state.
            least: by the number of a drawer that holds something, `Drawer.least`.
            count: how many drawers there are.
            keys: how many keys they hold.
            sizes: by number, the bytes of its records, where that is known.
        """
        self._store = store
        self.least = least
        self.count = count
        self.keys = keys
        self.sizes = sizes

    def numbers(self, touched: Iterable[bytes], clocks: Dues) -> dict[int, list[bytes]]:
        """Return the drawers to be taken out, in order, each with the keys touched in it."""
        found: dict[int, list[bytes]] = {}
        for key in touched:
            found.setdefault(number_of(key, self.count), []).append(key)
        for number, least in self.least.items():
            if any(due <= clock for due, clock in zip(least, clocks, strict=True)):
                found.setdefault(number, [])
        return dict(sorted(found.items()))

    def known(self, keys: Iterable[bytes]) -> list[bytes]:
        """Return those of some keys that there are records of."""
        if not self.least:
            return []
        found: list[bytes] = []
        for number, some in self.numbers(keys, (_NEVER, _NEVER, _NEVER)).items():
            if some and number in self.least:
                records = self.take_out(number).keys()
                found += [key for key in some if key in records]
        return found

    def adopt(self, records: Iterable[tuple[bytes, KeyState, Dues]]) -> None:
        """Take records that were kept elsewhere, of keys that there are none of."""
        by_key = {key: (state, dues) for key, state, dues in records}
        for number, some in self.numbers(by_key, (_NEVER, _NEVER, _NEVER)).items():
            drawer = self.take_out(number)
            before = len(drawer)
            for key in some:
                drawer.put(key, *by_key[key])
            self.put_back(number, drawer, before)

    def take_out(self, number: int) -> Drawer:
        """Return a drawer."""
        return Drawer(self._store.get(number, SEQ) if number in self.least else None)

    def put_back(self, number: int, drawer: Drawer, keys_before: int) -> None:
        """Take a drawer back; `keys_before` is how many keys it held when it was taken out."""
        self.keys += len(drawer) - keys_before
        if len(drawer):
            self._store.put(number, SEQ, drawer.encoded())
            self.least[number] = list(drawer.least())
            self.sizes[number] = drawer.size
        elif number in self.least:
            self._remove(number)

    def make_room(self) -> None:
        """Make more drawers when they are full, or fewer when most of them are nearly empty."""
        wanted = self.count
        while self.keys > _ROOM * wanted and wanted < _MOST:
            wanted *= 2
        while wanted > 1 and self.keys < _ROOM * wanted // 8:
            wanted //= 2
        if wanted == self.count:
            return
        found: dict[int, list[Drawer]] = {}
        for number in list(self.least):
            for into, part in self.take_out(number).split(wanted).items():
                found.setdefault(into, []).append(part)
            self._remove(number)
        self.count = wanted
        for number, parts in sorted(found.items()):
            whole = parts[0]
            for part in parts[1:]:
                whole.merge(part)
            self.put_back(number, whole, len(whole))

    def _remove(self, number: int) -> None:
        self._store.delete(number, SEQ)
        del self.least[number]
        self.sizes.pop(number, None)

    def all(self) -> Iterator[tuple[int, Drawer]]:
        """Give all drawers that hold something, in order."""
        for number in sorted(self.least):
            yield number, self.take_out(number)


def number_of(key: bytes, drawers: int) -> int:
    """Return the drawer of a key, by other bits than chose its shard: these all keys here share."""
    return (zlib.crc32(key) >> 20) % drawers
