"""Rows of each group's messages in the packs of a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamer.window.fire.pane_cache import CachedPack
from streamer.window.pack.pack_codec import Pack


class GroupRows:
    """Rows of each group's messages in packs.

    Attributes:
        is_interleaved: the packs' arrivals overlap, so that messages have to be sorted.
        is_shared: other windows hold the packs too.
        max_event_time: the largest event time of all messages, ns; None where it was not kept.
    """

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._packs = packs
        self.is_shared = any(isinstance(pack, CachedPack) for pack in packs)
        number: dict[bytes, int] = {}
        group_ids, firsts = [], []
        until = None
        self.is_interleaved = False
        for pack in packs:
            if until is not None and pack.header.first <= until:
                self.is_interleaved = True
            until = max(pack.header.last, until or pack.header.last)
            group_ids.append(
                np.array([number.setdefault(key, len(number)) for key in pack.keys], np.int32)
            )
            firsts.append(pack.arrivals[pack.starts[:-1]])
        self._keys = list(number)
        groups = np.concatenate(group_ids)
        self._order = np.argsort(groups, kind="stable").astype(np.int32)
        self._bounds = np.searchsorted(groups[self._order], np.arange(len(number) + 1))
        sizes = [len(ids) for ids in group_ids]
        self._pack = np.repeat(np.arange(len(packs), dtype=np.int32), sizes)
        self._start = np.cumsum([0, *sizes[:-1]])
        starts = self._bounds[:-1]
        self._firsts = np.minimum.reduceat(np.concatenate(firsts)[self._order], starts)
        self._sequence = np.argsort(self._firsts, kind="stable")
        self.max_event_time: int | None = None
        self._max_event_times: list[int] | None = None
        times = [one for pack in packs if (one := pack.group_max_times()) is not None]
        if len(times) == len(packs):
            newest = np.maximum.reduceat(np.concatenate(times)[self._order], starts)
            self.max_event_time, self._max_event_times = int(newest.max()), newest.tolist()
        if not self.is_interleaved and not self.is_shared:
            for pack in packs:
                pack.arrivals = np.empty(0, np.int64)

    def iterate_groups(self) -> Iterator[tuple[int, bytes, int | None, list[tuple[Pack, int]]]]:
        """Give first arrival, key, largest event time and segments of each group, in order."""
        firsts, bounds = self._firsts.tolist(), self._bounds.tolist()
        # As lists: of most groups there are a few entries, and arrays of a few cost more.
        order, of_pack, start = self._order.tolist(), self._pack.tolist(), self._start.tolist()
        packs = self._packs
        for group in self._sequence.tolist():
            segments = []
            for entry in order[bounds[group] : bounds[group + 1]]:
                number = of_pack[entry]
                segments.append((packs[number], entry - start[number]))
            newest = None if self._max_event_times is None else self._max_event_times[group]
            yield firsts[group], self._keys[group], newest, segments
