"""The index of a shard's state: which panes there are and where their packs lie.

The head, one value, holds the clock, `closed_until` and the counters; panes are listed in buckets
of neighbours, so that a micro-batch reads and writes only those that it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from streamer.core.errors import StreamerError
from streamer.window.contract import Counters, SystemClock
from streamer.window.settings.window import Window
from streamer.window.state.layout import HEAD_KEY, PANE_BUCKET_SEQ, PANE_INDEX_VERSION
from streamer.window.state_store import StateStore, check_format

_EPOCHS_PER_BUCKET: Final = 64


@dataclass(slots=True)
class Pane:
    """A pane that holds messages.

    Attributes:
        pane: its id.
        count: messages.
        size: bytes of their payloads.
        next_seq: of the next pack.
        runs: how many messages were taken at which `closed_until`, oldest first, with it; empty
            where windows cannot expire.
        sealed: seqs of packs that stay as they are, as runs [first, last].
        loose: packs that may still be joined: [seq, level].
        is_aggregated: whether a pack of aggregated groups is among them.
    """

    pane: int
    count: int = 0
    size: int = 0
    next_seq: int = 0
    runs: list[list[int]] = field(default_factory=list)
    sealed: list[list[int]] = field(default_factory=list)
    loose: list[list[int]] = field(default_factory=list)
    is_aggregated: bool = False

    def all_seqs(self) -> list[int]:
        """Return the seqs of all packs."""
        sealed = [seq for first, last in self.sealed for seq in range(first, last + 1)]
        return sealed + [seq for seq, _ in self.loose]


@dataclass(slots=True)
class PaneHead:
    """Head of a shard's state: all that it keeps besides panes.

    Attributes:
        fingerprint: the window's, which the state is bound to.
        clock: T, and which start it belongs to.
        horizon: the newest end that has closed; None before the first.
        newest: the newest end that any shard was ever given; None before the first message.
        stream: the largest event time that any shard was ever given, where that is the clock.
        next_arrival: the number of the next arrival.
        expired: ends of windows that were dropped, as runs [first, last], as long as they matter.
        counters: since the checkpoint began.
        buckets: by number, its oldest and newest pane, messages and bytes.
    """

    fingerprint: str
    clock: SystemClock = field(default_factory=SystemClock)
    horizon: int | None = None
    newest: int | None = None
    stream: int | None = None
    next_arrival: int = 0
    expired: list[list[int]] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    buckets: dict[int, list[int]] = field(default_factory=dict)


class PaneIndex:
    """Reads and writes head and buckets; nothing reaches the store before `save`."""

    def __init__(self, store: StateStore, window: Window) -> None:
        """Read the head.

        Raises:
            StreamerError: the state is of another window, or of a later version of the program.
        """
        self._store = store
        self._width = window.epoch * _EPOCHS_PER_BUCKET
        self._buckets: dict[int, dict[int, Pane]] = {}
        self._dirty: set[int] = set()
        self.head = _decode_head(store.get(*HEAD_KEY), window.fingerprint)
        self._stored = set(self.head.buckets)

    def get_or_create(self, pane: int) -> Pane:
        """Return a pane to change it, a new one if it is not there yet."""
        number = pane // self._width
        bucket = self._load_bucket(number)
        self._dirty.add(number)
        entry = bucket.get(pane)
        if entry is None:
            entry = bucket[pane] = Pane(pane)
        return entry

    def remove(self, pane: Pane) -> None:
        """Remove a pane; its packs are not looked at."""
        number = pane.pane // self._width
        del self._load_bucket(number)[pane.pane]
        self._dirty.add(number)

    def panes_between(self, after: int, until: int) -> Iterator[Pane]:
        """Return the panes in (after, until], oldest first."""
        first, last = (after + 1) // self._width, until // self._width
        for number in self._bucket_numbers():
            if first <= number <= last:
                bucket = self._load_bucket(number)
                yield from (bucket[p] for p in sorted(bucket) if after < p <= until)

    def oldest_pane(self) -> int | None:
        """Return the oldest pane."""
        for number in self._bucket_numbers():
            if number in self._buckets:
                return min(self._buckets[number])
            return self.head.buckets[number][0]
        return None

    def summarise(self) -> tuple[int, int, int | None]:
        """Return the messages held, their bytes, and the newest pane."""
        self._update_totals()
        sums = list(self.head.buckets.values())
        newest = max((s[1] for s in sums), default=None)
        return sum(s[2] for s in sums), sum(s[3] for s in sums), newest

    def first_panes(self, buckets: int) -> tuple[list[Pane], bool]:
        """Return the panes of the oldest buckets, and whether these are all."""
        numbers = self._bucket_numbers()
        panes = []
        for number in numbers[:buckets]:
            bucket = self._load_bucket(number)
            panes += [bucket[pane] for pane in sorted(bucket)]
        return panes, len(numbers) <= buckets

    def save(self) -> None:
        """Write what has changed, and the head."""
        self._update_totals()
        for number in sorted(self._dirty):
            bucket = self._buckets[number]
            if bucket:
                self._store.put(number, PANE_BUCKET_SEQ, _encode_bucket(bucket))
            elif number in self._stored:
                self._store.delete(number, PANE_BUCKET_SEQ)
        self._dirty.clear()
        self._stored = set(self.head.buckets)
        self._store.put(*HEAD_KEY, _encode_head(self.head))

    def _update_totals(self) -> None:
        for number in self._dirty:
            panes = self._buckets[number]
            if not panes:
                self.head.buckets.pop(number, None)
                continue
            counts = sum(pane.count for pane in panes.values())
            sizes = sum(pane.size for pane in panes.values())
            self.head.buckets[number] = [min(panes), max(panes), counts, sizes]

    def _bucket_numbers(self) -> list[int]:
        known = self.head.buckets.keys() | self._dirty
        return sorted(n for n in known if n not in self._buckets or self._buckets[n])

    def _load_bucket(self, number: int) -> dict[int, Pane]:
        bucket = self._buckets.get(number)
        if bucket is None:
            stored = self._store.get(number, PANE_BUCKET_SEQ) if number in self._stored else None
            bucket = self._buckets[number] = _decode_bucket(stored)
        return bucket


def _encode_bucket(bucket: dict[int, Pane]) -> bytes:
    panes = [
        [p.pane, p.count, p.size, p.next_seq, p.runs, p.sealed, p.loose, p.is_aggregated]
        for p in bucket.values()
    ]
    return orjson.dumps({"version": PANE_INDEX_VERSION, "panes": panes})


def _decode_bucket(data: bytes | None) -> dict[int, Pane]:
    if data is None:
        return {}
    return {fields[0]: Pane(*fields) for fields in _parse_versioned(data)["panes"]}


def _encode_head(head: PaneHead) -> bytes:
    fields = asdict(head)
    fields["buckets"] = [[number, *sums] for number, sums in head.buckets.items()]
    return orjson.dumps({"version": PANE_INDEX_VERSION, **fields})


def _decode_head(data: bytes | None, fingerprint: str) -> PaneHead:
    if data is None:
        return PaneHead(fingerprint)
    fields = _parse_versioned(data)
    del fields["version"]
    if fields["fingerprint"] != fingerprint:
        raise StreamerError(
            f"the checkpoint holds windows of {fields['fingerprint']}, but the config says "
            f"{fingerprint}: restore the buffer's settings, or start from another checkpoint"
        )
    fields["clock"] = SystemClock(**fields["clock"])
    fields["counters"] = Counters(**fields["counters"])
    fields["buckets"] = {number: sums for number, *sums in fields["buckets"]}
    return PaneHead(**fields)


def _parse_versioned(data: bytes) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = orjson.loads(data)
        version = fields["version"]
    except (ValueError, KeyError, TypeError):
        raise StreamerError(
            "the index of a window's state cannot be read: restore the checkpoint from a copy, or "
            "start from another one"
        ) from None
    check_format("the index of a window's state", version, (PANE_INDEX_VERSION,))
    return fields
