"""Messages as rows of packs: loaded packs, the rows of a key in them, and messages made of rows.

A message of a shard is never an object while it waits: it is a row of a pack (`pack.pack_codec`),
and what is done with it refers to it by pack and row. There are three ways from keys to rows:

- `Segment`: the rows of one key in a pack of this micro-batch, which lie side by side;
- `LocatedRows`: the rows of many keys in all packs, looked up by key and range of times;
- `MessageRows`: the same as lists, to select the rows of a batch and to build its messages.

"Times" are event times in ns; for count windows, which know no time, they are arrival numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from streamer.core.message import Batch, Message
from streamer.window.keyed.state import FOREVER
from streamer.window.pack.message_columns import DecodedMetadata, MessageBuilder
from streamer.window.pack.metadata_codec import (
    decode_meta,
    read_conditions,
    read_gap,
    read_key_spelling,
)
from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.int_codec import Bools, Ints

KeyRanges = Mapping[bytes, tuple[int, int]]
"""By key, a range of times, both bounds inclusive."""

FreeRange = tuple[int, int, int]
"""A range of times whose messages are freed, both bounds inclusive, and their last arrival
number."""


@dataclass(slots=True)
class PackEntry:
    """A pack in the state store, as the head of the state lists it.

    Attributes:
        seq: the pack's seq in the store.
        low: the least of its messages' times.
        high: the largest.
        count: number of messages.
        freed: how many of them have been freed.
        size: bytes of their payloads.
    """

    seq: int
    low: int
    high: int
    count: int
    freed: int
    size: int


class LoadedPack:
    """An unpacked pack, with a mark for each message that has been freed.

    Attributes:
        entry: its entry in the store; None if it came in with this micro-batch.
        pack: the messages.
        times: by row, the message's time.
        freed: by row, whether the message has been freed.
        changed: whether this micro-batch has freed some.
    """

    __slots__ = ("entry", "pack", "times", "freed", "changed", "_payloads", "_listed")

    def __init__(self, pack: Pack, by_arrival: bool, entry: PackEntry | None = None) -> None:
        self.pack = pack
        times = pack.arrivals if by_arrival else pack.times
        assert times is not None
        self.times = times
        self.entry = entry
        self.freed: Bools = np.zeros(len(times), np.bool_)
        self.changed = False
        self._payloads: list[bytes] | None = None
        self._listed: tuple[list[int], list[int]] | None = None

    def free(self, rows: Ints) -> None:
        """Mark messages as freed."""
        self.freed[rows] = True
        self.changed = True

    def keep_only(self, rows: Ints) -> None:
        """Mark all messages but these as freed; freed ones among these stay freed."""
        others = np.ones(len(self.freed), np.bool_)
        others[rows] = False
        self.freed |= others
        self.changed = True

    @property
    def arrivals_and_times(self) -> tuple[list[int], list[int]]:
        """Arrival numbers and times by row, as lists: they are faster to read one by one."""
        if self._listed is None:
            self._listed = self.pack.arrivals.tolist(), self.times.tolist()
        return self._listed

    @property
    def payloads(self) -> list[bytes]:
        """All payloads by row, unpacked once: a caller that needs one needs more."""
        if self._payloads is None:
            self._payloads = self.pack.payloads()
        return self._payloads

    def encoded_metadata(self, row: int) -> bytes:
        """Return a message's metadata, as `metadata_codec` wrote it."""
        pack = self.pack
        return pack.metas[0 if pack.meta_ids is None else pack.meta_ids[row]]


class FreshPack(LoadedPack):
    """A pack that came in with this micro-batch.

    Attributes:
        watermark: the watermark before the piece of input that the pack is from.
        partition: the source partition of that piece.
        lags: by row, how far the watermark within the piece was beyond the message's time, 0 where
            it was not; None if it never was.
        max_watermark: the watermark before each of its messages is at most this.
        stored: the pack as it is stored if none of its messages is freed.
    """

    __slots__ = (
        *("watermark", "partition", "lags", "max_watermark", "stored", "_gaps"),
        "_conditions",
    )

    def __init__(
        self, pack: Pack, by_arrival: bool, stored: bytes, watermark: int, partition: bytes
    ) -> None:
        super().__init__(pack, by_arrival)
        self.stored = stored
        self.watermark = watermark
        self.partition = partition
        self._gaps: list[int | None] | None = None
        self._conditions: list[int] | None = None
        self.lags: list[int] | None = None
        self.max_watermark = watermark
        lags = pack.lags
        if lags is not None and lags.any():
            self.lags = lags.tolist()
            self.max_watermark = max(watermark, int((self.times + lags)[lags > 0].max()))

    def watermark_before(self, row: int) -> int:
        """Return the watermark before a message, ns; `NEVER` for none."""
        lag = 0 if self.lags is None else self.lags[row]
        return max(self.watermark, int(self.times[row]) + lag) if lag else self.watermark

    def gap_of(self, row: int) -> int | None:
        """Return the gap that a message brings to its session, ns; None where it brings none."""
        if self._gaps is None:
            self._gaps = list(map(read_gap, self.pack.metas))
        ids = self.pack.meta_ids
        return self._gaps[0 if ids is None else ids[row]]

    def conditions_of(self, row: int) -> int:
        """Return the bits of the conditions of windows that hold for a message."""
        if self._conditions is None:
            self._conditions = list(map(read_conditions, self.pack.metas))
        ids = self.pack.meta_ids
        return self._conditions[0 if ids is None else ids[row]]


Segment = tuple[FreshPack, int, int]
"""The messages of one key in a pack of this micro-batch, in order of arrival: the pack, their first
row, and the row after their last. A micro-batch may have a million: hence a plain tuple."""

MessageRow = tuple[int, int, int, FreshPack, int]
"""A message of this micro-batch: arrival number, time, watermark before it, pack and row."""


def iterate_in_order(segments: list[Segment]) -> Iterable[MessageRow]:
    """Give the messages of a key's segments in order of arrival."""
    rows = (
        make_message_row(loaded, row)
        for loaded, first, last in segments
        for row in range(first, last)
    )
    return rows if len(segments) == 1 else sorted(rows, key=itemgetter(0))


def make_message_row(loaded: FreshPack, row: int) -> MessageRow:
    """Return the message in a row of a pack."""
    arrivals, times = loaded.arrivals_and_times
    time, watermark, lags = times[row], loaded.watermark, loaded.lags
    if lags is not None and lags[row]:
        watermark = max(watermark, time + lags[row])
    return arrivals[row], time, watermark, loaded, row


def find_gaps(ranges: Iterable[tuple[int, int]], low: int) -> list[FreeRange]:
    """Return the gaps between ranges of times, from `low` on; all bounds are inclusive."""
    gaps: list[FreeRange] = []
    for first, last in sorted(ranges):
        if low < first:
            gaps.append((low, first - 1, FOREVER))
        low = max(low, last + 1)
    return [*gaps, (low, FOREVER, FOREVER)] if low <= FOREVER else gaps


@dataclass(slots=True)
class LocatedRows:
    """Messages of some keys, as columns that are sorted by key, then by arrival.

    Attributes:
        bounds: by key, the range [first, last) of its messages in the columns.
        times: the messages' times.
        arrivals: their arrival numbers.
        pack_numbers: the pack of each, as an index into `packs`.
        rows: the row of each in its pack.
        packs: the packs.
    """

    bounds: dict[bytes, tuple[int, int]]
    times: Ints
    arrivals: Ints
    pack_numbers: Ints
    rows: Ints
    packs: list[LoadedPack]

    def free(self, indices: Ints) -> None:
        """Mark messages as freed, given by their indices in the columns."""
        pack_numbers, rows = self.pack_numbers[indices], self.rows[indices]
        for number in np.unique(pack_numbers).tolist():
            self.packs[number].free(rows[pack_numbers == number])


def locate_rows(packs: Iterable[LoadedPack], key_ranges: KeyRanges) -> LocatedRows:
    """Find the messages of keys that have not been freed.

    Args:
        packs: the packs to search.
        key_ranges: by key, the range of its messages' times.
    """
    numbers = {key: number for number, key in enumerate(key_ranges)}
    lows = np.array([low for low, _ in key_ranges.values()])
    highs = np.array([high for _, high in key_ranges.values()])
    matching_packs: list[LoadedPack] = []
    columns: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
    for loaded in packs:
        rows, keys = _find_key_rows(loaded, numbers)
        if not len(rows):
            continue
        times = loaded.times[rows]
        inside = (times >= lows[keys]) & (times <= highs[keys]) & ~loaded.freed[rows]
        if inside.any():
            rows = rows[inside]
            of = np.full(len(rows), len(matching_packs))
            columns.append((keys[inside], times[inside], loaded.pack.arrivals[rows], of, rows))
            matching_packs.append(loaded)
    if not columns:
        empty = np.empty(0, np.int64)
        return LocatedRows(dict.fromkeys(numbers, (0, 0)), empty, empty, empty, empty, [])
    keys, times, arrivals, pack_numbers, rows = map(np.concatenate, zip(*columns, strict=True))
    order = np.lexsort((arrivals, keys))
    ends = np.searchsorted(keys[order], np.arange(len(numbers) + 1)).tolist()
    bounds = {key: (ends[n], ends[n + 1]) for key, n in numbers.items()}
    return LocatedRows(
        bounds, times[order], arrivals[order], pack_numbers[order], rows[order], matching_packs
    )


def _find_key_rows(loaded: LoadedPack, numbers: Mapping[bytes, int]) -> tuple[Ints, Ints]:
    """Return the rows of numbered keys in a pack, and by row the key's number."""
    pack = loaded.pack
    of_group = np.array([numbers.get(key, -1) for key in pack.keys or [b""]], np.int64)
    keys = np.repeat(of_group, np.diff(np.array(pack.starts)))
    rows = np.flatnonzero(keys >= 0)
    return rows, keys[rows]


class MessageRows:
    """Located messages as lists, to build the messages of many batches.

    An index is that of a message in the columns of `LocatedRows`.

    Attributes:
        bounds: as in `LocatedRows`.
        times: by index.
        arrivals: by index, the arrival number.
    """

    def __init__(self, located: LocatedRows) -> None:
        """Turn the columns into lists."""
        self.bounds = located.bounds
        self.times: list[int] = located.times.tolist()
        self.arrivals: list[int] = located.arrivals.tolist()
        self._packs = located.packs
        self._pack_numbers: list[int] = located.pack_numbers.tolist()
        self._rows: list[int] = located.rows.tolist()

    def find_index(self, key: bytes, arrival: int) -> int:
        """Return the index of a key's message with an arrival number.

        Messages of other keys may have the same number after shards were merged.
        """
        return bisect_left(self.arrivals, arrival, *self.bounds[key])

    def spelling_at(self, index: int) -> bytes | None:
        """Return the message's own spelling of its key; None if it is the key itself."""
        loaded, row = self._packs[self._pack_numbers[index]], self._rows[index]
        return read_key_spelling(loaded.encoded_metadata(row))

    def build_message(
        self, index: int, metadata: Mapping[str, Any], decoded: DecodedMetadata
    ) -> Message:
        """Build one message.

        Args:
            index: the message's.
            metadata: is added to the message's own.
            decoded: remembers the messages' own metadata.
        """
        loaded, row = self._packs[self._pack_numbers[index]], self._rows[index]
        encoded = loaded.encoded_metadata(row)
        known = decoded.get(encoded)
        if known is None:
            known = decoded[encoded] = decode_meta(encoded)
        return Message(loaded.payloads[row], {**known[0], **metadata}, known[1])

    def build_messages(self, indices: Sequence[int], builder: MessageBuilder) -> Batch:
        """Build the messages of a batch, those of one pack together."""
        messages: Batch = []
        pack_numbers, rows = self._pack_numbers, self._rows
        first = 0
        while first < len(indices):
            pack_number = pack_numbers[indices[first]]
            last = first + 1
            while last < len(indices) and pack_numbers[indices[last]] == pack_number:
                last += 1
            loaded = self._packs[pack_number]
            payloads, pack = loaded.payloads, loaded.pack
            some = [rows[index] for index in indices[first:last]]
            ids = None if pack.meta_ids is None else pack.meta_ids[some]
            messages += builder.build_messages([payloads[row] for row in some], pack.metas, ids)
            first = last
        return messages
