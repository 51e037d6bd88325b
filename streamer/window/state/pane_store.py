"""Panes in the state of a shard: their index, and their packs, of which small ones are joined.

The head, one value, holds the clock, `closed_until` and the counters; panes are listed in buckets
of neighbours, so that a micro-batch reads and writes only those that it changes. Packs are put in
as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from streamer.core.errors import StreamerError
from streamer.window.aggregate.aggregate_codec import decode_aggregates
from streamer.window.aggregate.aggregate_codec import encode_aggregates as encode_groups
from streamer.window.aggregate.partial_aggregates import PartialAggregates, merge_partial_aggregates
from streamer.window.contract import Counters, SystemClock
from streamer.window.pack.merge_packs import merge_packs
from streamer.window.pack.pack_codec import (
    MAX_PACK_BYTES,
    Header,
    Pack,
    StoredPack,
    encode_pack,
    read_header,
)
from streamer.window.settings.window import Window
from streamer.window.state.layout import (
    HEAD_KEY,
    PANE_BUCKET_SEQ,
    PANE_INDEX_VERSION,
    decode_stored_pack,
    encode_stored_pack,
)
from streamer.window.state_store import StateStore, check_format

_EPOCHS_PER_BUCKET: Final = 64

# So many packs of one level are joined into one of the next: a message is written again at most
# once for every level, of which there are few (4 KiB, 32 KiB, 256 KiB).
_PACKS_PER_JOIN: Final = 8
_SEALED_BYTES: Final = MAX_PACK_BYTES // _PACKS_PER_JOIN
# Folded groups have texts and keys in common, so that they shrink as they are joined.
_SEALED_AGGREGATED_BYTES: Final = MAX_PACK_BYTES // 4
_FIRST_LEVEL_BYTES: Final = 4096
# A call to the store costs as much as joining so many bytes.
_TINY_BYTES: Final = 32 * 1024


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
        sources: `SourceClocks.to_fields`; None where the clock waits for no source.
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
    sources: list[Any] | None = None


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
    if head.sources is None:
        del fields["sources"]
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


class IncomingPack(NamedTuple):
    """A pack that came in.

    Attributes:
        body: as `encode_pack` wrote it.
        shift: what is to be added to its arrival numbers.
        header: its header.
    """

    body: bytes
    shift: int
    header: Header


class PaneStore:
    """Puts packs into a store, takes them out, and tells the index."""

    def __init__(self, store: StateStore, index: PaneIndex) -> None:
        self._store = store
        self._index = index

    def put(
        self, pane_id: int, incoming: Iterable[IncomingPack], closed_until: int | None = None
    ) -> None:
        """Keep packs of a pane, as they are where that is worth a place of their own.

        Args:
            pane_id: the pane.
            incoming: the packs.
            closed_until: at which they are taken, if that has to be known later.
        """
        pane = self._index.get_or_create(pane_id)
        tiny: list[IncomingPack] = []
        aggregated: list[IncomingPack] = []
        for pack in incoming:
            header = pack.header
            pane.count += header.messages
            pane.size += header.payload_bytes
            pane.is_aggregated = pane.is_aggregated or header.is_aggregated
            if closed_until is not None and pane.runs and pane.runs[-1][0] == closed_until:
                pane.runs[-1][1] += header.messages
            elif closed_until is not None:
                pane.runs.append([closed_until, header.messages])
            if header.payload_bytes < _TINY_BYTES:
                tiny.append(pack)
            elif header.is_aggregated and header.payload_bytes < _SEALED_AGGREGATED_BYTES:
                aggregated.append(pack)
            else:
                self._add(pane, pack.body, pack.shift, header.payload_bytes, 0)
        for start in range(0, len(tiny), MAX_PACK_BYTES // _TINY_BYTES):
            self._add_joined(pane, tiny[start : start + MAX_PACK_BYTES // _TINY_BYTES])
        # Of a micro-batch's aggregated packs each has the same texts and keys.
        for start in range(0, len(aggregated), _PACKS_PER_JOIN):
            self._add_joined(pane, aggregated[start : start + _PACKS_PER_JOIN])
        self._compact(pane)

    def load_packs(self, pane: Pane) -> list[StoredPack]:
        """Return the packs of a pane, each with its shift; they stay where they are."""
        return [self._load_pack(pane, seq) for seq in pane.all_seqs()]

    def remove(self, pane: Pane) -> None:
        """Remove a pane and its packs."""
        for seq in pane.all_seqs():
            self._store.delete(pane.pane, seq)
        self._index.remove(pane)

    def _load_pack(self, pane: Pane, seq: int) -> StoredPack:
        value = self._store.get(pane.pane, seq)
        if value is None:
            raise StreamerError(
                f"the checkpoint lacks pack {seq} of the window pane {pane.pane}: restore it from "
                "a copy, or start from another one"
            )
        return decode_stored_pack(value)

    def _add_joined(self, pane: Pane, packs: list[IncomingPack]) -> None:
        if len(packs) == 1:
            body, shift, header = packs[0]
            self._add(pane, body, shift, header.payload_bytes, 0)
            return
        for body, raw in _join_packs(pane, [(pack.body, pack.shift) for pack in packs]):
            self._add(pane, body, 0, raw, 0)

    def _add(self, pane: Pane, body: bytes, shift: int, raw: int, level: int) -> None:
        seq = pane.next_seq
        pane.next_seq += 1
        self._store.put(pane.pane, seq, encode_stored_pack(body, shift))
        if raw >= (_SEALED_AGGREGATED_BYTES if pane.is_aggregated else _SEALED_BYTES):
            if pane.sealed and pane.sealed[-1][1] == seq - 1:
                pane.sealed[-1][1] = seq
            else:
                pane.sealed.append([seq, seq])
            return
        while raw >= _FIRST_LEVEL_BYTES * _PACKS_PER_JOIN**level:
            level += 1
        pane.loose.append([seq, level])

    def _compact(self, pane: Pane) -> None:
        """Join packs of one level while there are enough of them."""
        for level in range(64):
            same = [seq for seq, other in pane.loose if other == level]
            if len(same) >= _PACKS_PER_JOIN:
                stored = [self._load_pack(pane, seq) for seq in same[:_PACKS_PER_JOIN]]
                joined = _join_packs(pane, stored)
                for seq in same[:_PACKS_PER_JOIN]:
                    self._store.delete(pane.pane, seq)
                pane.loose = [
                    entry for entry in pane.loose if entry[0] not in same[:_PACKS_PER_JOIN]
                ]
                for body, raw in joined:
                    self._add(pane, body, 0, raw, level + 1)
            elif level > max((other for _, other in pane.loose), default=0):
                return


def _join_packs(pane: Pane, stored: list[StoredPack]) -> list[tuple[bytes, int]]:
    """Join packs of a pane: those of messages to one, aggregated groups to one for each mapping.

    Returns:
        Each with its size, by which the pane's own is corrected: aggregated groups become one.
    """
    whole: list[Pack] = []
    aggregated: dict[str, list[PartialAggregates]] = {}
    for body, shift in stored:
        if read_header(body).is_aggregated:
            groups = decode_aggregates(body, shift)
            aggregated.setdefault(groups.text, []).append(groups)
        else:
            whole.append(Pack(body, shift))
    bodies = []
    if whole:
        columns = merge_packs(whole, grouped=True)
        bodies.append((encode_pack(columns), sum(pack.header.payload_bytes for pack in whole)))
    for same in aggregated.values():
        same.sort(key=lambda groups: groups.first_arrival)
        bodies.append(encode_groups(merge_partial_aggregates(same)))
    pane.size += sum(raw for _, raw in bodies) - sum(
        read_header(body).payload_bytes for body, _ in stored
    )
    return bodies
