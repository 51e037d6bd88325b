"""Messages on their way into packs: collected as columns, sorted by row and group, cut, encoded."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from streamer.window.ints import Ints
from streamer.window.pack import LIMIT, Columns, encode
from streamer.window.row import Kind, Row
from streamer.window.stamps import SLOT_BITS, Groups

ROOM: Final = 8 * LIMIT
"""Bytes of payload that are collected at most, whatever the number of rows they go into."""


class Timed(NamedTuple):
    """The event times of some messages.

    Attributes:
        times: by message, ns.
        lags: by message, how far the clock before it was beyond its time, ns, >= 0.
    """

    times: Ints
    lags: Ints

    def of(self, chosen: Ints) -> Timed:
        """Return those of some messages."""
        return Timed(self.times[chosen], self.lags[chosen])


class Collector:
    """Collects messages, and gives them back as rows.

    Attributes:
        size: payload bytes that are held.
    """

    def __init__(self) -> None:
        self.size = 0
        self._payloads: list[bytes] = []
        self._codes: list[Ints] = []
        self._arrivals: list[Ints] = []
        self._lengths: list[Ints] = []
        self._metas: dict[bytes, int] = {}
        self._meta_ids: list[Ints] = []
        self._timed: list[Timed] = []
        self._single: tuple[list[int], ...] = ([], [], [], [])

    def add(
        self,
        payloads: list[bytes],
        lengths: Ints,
        codes: Ints,
        arrivals: Ints,
        metas: list[bytes],
        timed: Timed | None = None,
    ) -> None:
        """Add messages.

        Args:
            payloads: by message.
            lengths: by message, of its payload.
            codes: by message, slot and group (`SLOT_BITS`).
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            timed: their event times, for windows that follow them.
        """
        self._settle()
        if timed is not None:
            self._timed.append(timed)
        numbers = [self._metas.setdefault(meta, len(self._metas)) for meta in metas]
        meta_ids = np.full(len(payloads), numbers[0]) if len(metas) == 1 else np.array(numbers)
        self._payloads += payloads
        self._codes.append(codes)
        self._arrivals.append(arrivals)
        self._meta_ids.append(meta_ids)
        self._lengths.append(lengths)
        self.size += int(lengths.sum())

    def add_one(
        self, payload: bytes, code: int, arrival: int, meta: bytes, timed: Timed | None = None
    ) -> None:
        """Add a message."""
        if timed is not None:
            self._timed.append(timed)
        codes, arrivals, meta_ids, lengths = self._single
        codes.append(code)
        arrivals.append(arrival)
        meta_ids.append(self._metas.setdefault(meta, len(self._metas)))
        self._payloads.append(payload)
        lengths.append(len(payload))
        self.size += len(payload) + len(meta)

    def _settle(self) -> None:
        if self._single[0]:
            columns = (self._codes, self._arrivals, self._meta_ids, self._lengths)
            for column, single in zip(columns, self._single, strict=True):
                column.append(np.array(single, np.int64))
            self._single = ([], [], [], [])

    def has_room(self, size: int, rows: int) -> bool:
        """Whether to go on before giving back.

        Args:
            size: bytes that are to be added.
            rows: how many rows there are for messages to go into.
        """
        return not self.size or self.size + size <= min(LIMIT * max(rows, 1), ROOM)

    def rows(
        self,
        where: list[tuple[Kind, int]],
        groups: Groups | None,
        key_id: int,
        newest_of: Kind | None = None,
    ) -> Iterator[Row]:
        """Give back all messages, in packs of at most `LIMIT` bytes.

        Args:
            where: by slot, kind and pane.
            groups: by group, key and shard; None when there is no key: all go to shard 0.
            key_id: identifies the key's expression.
            newest_of: of rows of this kind the largest event times by group are kept, not all.
        """
        if not self._payloads:
            return
        self._settle()
        codes = np.concatenate(self._codes)
        slots, group_ids = codes >> SLOT_BITS, codes & (1 << SLOT_BITS) - 1
        rows = slots
        if groups is not None:
            shards = np.array(groups.shard_of, np.int64)[group_ids]
            rows = slots + len(where) * shards
        arrivals, meta_ids = np.concatenate(self._arrivals), np.concatenate(self._meta_ids)
        lengths = np.concatenate(self._lengths)
        timed = self._all_timed()
        for indices in by_value(rows):
            shard, slot = divmod(int(rows[indices[0]]), len(where))
            kind, pane = where[slot]
            for part in self._parts(indices, lengths[indices]):
                keys = counts = None
                if groups is not None:
                    part = part[_stable_order(group_ids[part])]
                    starts, counts = _runs(group_ids[part])
                    keys = [groups.key_of[group] for group in group_ids[part[starts]].tolist()]
                metas, ids = distinct(list(self._metas), meta_ids[part])
                columns = Columns(
                    self._chosen(part),
                    lengths[part],
                    arrivals[part],
                    metas,
                    ids,
                    keys,
                    counts,
                    key_id,
                )
                if timed is not None:
                    _tell(columns, timed, part, only_newest=kind == newest_of)
                yield Row(shard, kind, pane, int(columns.arrivals.min()), encode(columns))

    def _all_timed(self) -> Timed | None:
        if not self._timed:
            return None
        times, lags = zip(*self._timed, strict=True)
        return Timed(np.concatenate(times), np.concatenate(lags))

    def _chosen(self, part: Ints) -> list[bytes]:
        if len(part) == 1:
            return [self._payloads[part[0]]]
        if len(part) == len(self._payloads) and np.array_equal(part, np.arange(len(part))):
            return self._payloads
        return list(itemgetter(*part.tolist())(self._payloads))

    def _parts(self, indices: Ints, lengths: Ints) -> Iterator[Ints]:
        """Cut the messages of one row, which are in order of arrival, to packs."""
        if self.size <= LIMIT:
            yield indices
            return
        ends = np.cumsum(lengths)
        # In equal parts, rather than whole ones and a small rest.
        size = int(ends[-1])
        most = min(LIMIT, size // -(-size // LIMIT) + int(lengths.max()))
        start = 0
        while start < len(indices):
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + most, "right"))
            stop = max(stop, start + 1)
            yield indices[start:stop]
            start = stop


def _tell(columns: Columns, timed: Timed, part: Ints, only_newest: bool) -> None:
    """Say in a pack's columns what there is to say of event times."""
    times = timed.times[part]
    if not only_newest:
        columns.times = times
        lags = timed.lags[part]
        columns.lags = lags if lags.any() else None
    elif columns.counts is None:
        columns.newest = times.max(keepdims=True)
    else:
        columns.newest = np.maximum.reduceat(times, np.cumsum(columns.counts) - columns.counts)


def distinct(metas: list[bytes], ids: Ints) -> tuple[list[bytes], Ints | None]:
    """Leave out metadata that none of the messages has."""
    if len(metas) == 1:
        return metas, None
    used, renumbered = np.unique(ids, return_inverse=True)
    chosen = [metas[i] for i in used.tolist()]
    return chosen, renumbered.astype(np.int64) if len(chosen) > 1 else None


def _stable_order(values: Ints) -> Ints:
    # numpy sorts 16-bit numbers by radix, ten times as fast.
    narrow = values.astype(np.uint16) if int(values.max()) < 1 << 16 else values
    return np.argsort(narrow, kind="stable")


def _runs(values: Ints) -> tuple[Ints, Ints]:
    """Return the start and the length of every run of equal values."""
    starts = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(np.diff(values)) + 1))
    return starts, np.diff(starts, append=len(values))


def by_value(values: Ints) -> list[Ints]:
    """Return the indices of equal values, in their order, for each value."""
    if int(values.min()) == int(values.max()):
        return [np.arange(len(values))]
    order = _stable_order(values)
    starts, _ = _runs(values[order])
    return np.split(order, starts[1:])
