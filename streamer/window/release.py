"""From packs to messages: a window in order of arrival, group after group where it is keyed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamer.message import Batch
from streamer.window.merge import merge
from streamer.window.metas import Metas
from streamer.window.pack import Columns, Pack, Stored, peek
from streamer.window.shelf import SharedPack, documents_of, remember


def release(stored: list[Stored], metas: Metas) -> Iterator[tuple[bytes | None, Batch]]:
    """Give the messages of a window.

    Args:
        stored: its packs; the list is emptied, so that they need not be held any longer.
        metas: adds the window's metadata.

    Returns:
        A key and its messages for each group, in order of first arrival; or None and all messages,
        when not all packs are grouped by the same key.
    """
    key_ids = {peek(body).key_id for body, _ in stored}
    if len(key_ids) == 1 and None not in key_ids:
        _newest_first(stored)
        packs: list[Pack] = []
        while stored:
            packs.append(Pack(*stored.pop()))
        yield from _by_group(packs, metas)
        return
    messages: Batch = []
    for columns in in_order(stored):
        messages += metas.messages(columns.payloads, columns.metas, columns.meta_ids)
        del columns
    yield None, messages


def release_shared(packs: list[SharedPack], metas: Metas) -> Iterator[tuple[bytes, Batch]] | None:
    """Give the messages of a window as `release` does, from packs that other windows hold too.

    What a pipeline parses while it has a group is kept in the packs.

    Returns:
        None when not all packs are grouped by the same key: then nothing is shared.
    """
    key_ids = {pack.header.key_id for pack in packs}
    if len(key_ids) != 1 or None in key_ids:
        return None
    return _by_group(sorted(packs, key=lambda pack: pack.header.first), metas)


def in_order(stored: list[Stored]) -> Iterator[Columns]:
    """Give all messages in order of arrival, as many at a time as cannot be told apart.

    Args:
        stored: packs; the list is emptied.
    """
    _newest_first(stored)
    cluster: list[Pack] = []
    until = 0
    while stored:
        pack = Pack(*stored.pop())
        if cluster and pack.header.first > until:
            yield merge(cluster, grouped=False)
            cluster = []
        until = max(until, pack.header.last) if cluster else pack.header.last
        cluster.append(pack)
    if cluster:
        yield merge(cluster, grouped=False)


def _newest_first(stored: list[Stored]) -> None:
    stored.sort(key=lambda entry: peek(entry[0]).first + entry[1], reverse=True)


def _by_group(packs: Sequence[Pack], metas: Metas) -> Iterator[tuple[bytes, Batch]]:
    """Cut out group after group of packs that are in order of their first arrival."""
    places = _Places(packs)
    uniform = len({meta for pack in packs for meta in pack.metas}) == 1
    for key, segments in places.groups():
        if uniform:
            payloads = [raw for pack, index in segments for raw in pack.group(index)]
            messages = metas.messages(payloads, packs[0].metas, None, documents_of(segments))
        else:
            messages = []
            for pack, index in segments:
                ids = None if pack.meta_ids is None else pack.meta_ids[pack.span(index)]
                documents = documents_of([(pack, index)])
                messages += metas.messages(pack.group(index), pack.metas, ids, documents)
        yield key, _sorted(segments, messages) if places.interleaved else messages
        if places.shared:
            remember(segments, messages)


def _sorted(segments: list[tuple[Pack, int]], messages: Batch) -> Batch:
    arrivals = np.concatenate([pack.arrivals[pack.span(index)] for pack, index in segments])
    if not np.any(np.diff(arrivals) < 0):
        return messages
    order = np.argsort(arrivals, kind="stable")
    return [messages[i] for i in order.tolist()]


class _Places:
    """Where the messages of each group lie in packs.

    Attributes:
        interleaved: the packs' arrivals overlap, so that messages have to be sorted.
        shared: other windows hold the packs too.
    """

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._packs = packs
        self.shared = any(isinstance(pack, SharedPack) for pack in packs)
        number: dict[bytes, int] = {}
        group_ids, firsts = [], []
        until = None
        self.interleaved = False
        for pack in packs:
            if until is not None and pack.header.first <= until:
                self.interleaved = True
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
        first = np.concatenate(firsts)[self._order]
        self._sequence = np.argsort(np.minimum.reduceat(first, self._bounds[:-1]), kind="stable")
        if not self.interleaved and not self.shared:
            for pack in packs:
                pack.arrivals = np.empty(0, np.int64)

    def groups(self) -> Iterator[tuple[bytes, list[tuple[Pack, int]]]]:
        """Give the key and the segments of each group, in order of first arrival."""
        for group in self._sequence.tolist():
            entries = self._order[self._bounds[group] : self._bounds[group + 1]]
            of_pack = self._pack[entries]
            within = entries - self._start[of_pack]
            packs = [self._packs[i] for i in of_pack.tolist()]
            yield self._keys[group], list(zip(packs, within.tolist(), strict=True))
