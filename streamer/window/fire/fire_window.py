"""From packs to messages: a window in order of arrival, group after group where it is keyed.

When a stream catches up, several sliding windows close in one step, and each holds most of the
panes of the one before. A cache keeps what they share: packs are unpacked once, documents parsed
once. Without it, every message is cut out and parsed for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from streamer.core.json.bulk import parse_payloads
from streamer.core.lazy_batch import Column, LazyBatch
from streamer.core.message import UNPARSED, Batch, Message
from streamer.window.aggregate.fire_groups import PaneParts
from streamer.window.pack.merge_packs import merge_packs
from streamer.window.pack.message_columns import FiredGroup, GroupMetadata, MessageBuilder
from streamer.window.pack.metadata_codec import read_key_spelling
from streamer.window.pack.pack_codec import Pack, PackBytes, PackColumns, StoredPack, read_header
from streamer.window.state.pane_store import Pane, PaneStore

AnyPack = TypeVar("AnyPack", bound=Pack)

MAX_CACHED_MESSAGES: Final = 600_000
"""Messages of a window up to which documents are kept: some hundred MB of them in a worker."""


def fire_window(stored: list[StoredPack], labels: GroupMetadata) -> Iterator[FiredGroup]:
    """Give the messages of a window.

    Args:
        stored: its packs; the list is emptied, so that they need not be held any longer.
        labels: says what messages are told of the window.

    Returns:
        The groups in order of first arrival; or all messages together, when not all packs are
        grouped by the same key.
    """
    key_ids = {read_header(body).key_id for body, _ in stored}
    if len(key_ids) == 1 and None not in key_ids:
        _sort_newest_first(stored)
        packs: list[Pack] = []
        while stored:
            packs.append(Pack(*stored.pop()))
        yield from _build_groups(packs, labels)
    else:
        yield from fire_ungrouped(stored, labels)


def fire_ungrouped(stored: list[StoredPack], labels: GroupMetadata) -> Iterator[FiredGroup]:
    """Give all messages of a window together, however they are grouped; else as `fire_window`."""
    first = min(read_header(body).first + shift for body, shift in stored)
    return _build_ungrouped(first, iterate_in_order(stored), labels)


def fire_ungrouped_cached(packs: list[CachedPack], labels: GroupMetadata) -> Iterator[FiredGroup]:
    """Give a window as `fire_ungrouped` does, from packs that other windows hold too."""
    packs = sorted(packs, key=lambda pack: pack.header.first)
    return _build_ungrouped(
        packs[0].header.first, map(_merge_cluster, _cluster_overlapping(packs)), labels
    )


def _build_ungrouped(
    first: int, parts: Iterable[PackColumns], labels: GroupMetadata
) -> Iterator[FiredGroup]:
    # What messages are told may be known only when all of them have been seen.
    columns_list = []
    times: list[int | None] = []
    for columns in parts:
        columns_list.append((columns.payloads, columns.metas, columns.meta_ids))
        known = columns.times if columns.max_times is None else columns.max_times
        times.append(None if known is None else int(known.max()))
        del columns
    metas = labels.builder_for(None, _max_time_of(times))
    messages: Batch = []
    columns_list.reverse()
    while columns_list:
        messages += metas.build_messages(*columns_list.pop())
    yield FiredGroup(first, None, messages)


def _max_time_of(times: Iterable[int | None]) -> int | None:
    """Return the largest of some event times; None when it was not kept everywhere."""
    newest: int | None = None
    for time in times:
        if time is None:
            return None
        newest = time if newest is None else max(newest, time)
    return newest


def fire_cached(packs: list[CachedPack], labels: GroupMetadata) -> Iterator[FiredGroup] | None:
    """Give the messages of a window as `release` does, from packs that other windows hold too.

    What a pipeline parses while it has a group is kept in the packs.

    Returns:
        None when not all packs are grouped by the same key: then nothing is shared.
    """
    key_ids = {pack.header.key_id for pack in packs}
    if len(key_ids) != 1 or None in key_ids:
        return None
    return _build_groups(sorted(packs, key=lambda pack: pack.header.first), labels)


def iterate_in_order(stored: list[StoredPack]) -> Iterator[PackColumns]:
    """Return all messages in order of arrival, in blocks that overlap no other pack.

    Args:
        stored: packs; the list is emptied.
    """
    _sort_newest_first(stored)
    opened = (Pack(*stored.pop()) for _ in range(len(stored)))
    for cluster in _cluster_overlapping(opened):
        yield merge_packs(cluster, grouped=False)
        del cluster


def _merge_cluster(cluster: list[CachedPack]) -> PackColumns:
    return cluster[0].merge_messages() if len(cluster) == 1 else merge_packs(cluster, grouped=False)


def _cluster_overlapping(packs: Iterable[AnyPack]) -> Iterator[list[AnyPack]]:
    """Bring packs together whose arrivals overlap; they come in order of their first arrival."""
    cluster: list[AnyPack] = []
    until = 0
    for pack in packs:
        if cluster and pack.header.first > until:
            yield cluster
            cluster = []
        until = max(until, pack.header.last) if cluster else pack.header.last
        cluster.append(pack)
        del pack
    if cluster:
        yield cluster


def _sort_newest_first(stored: list[StoredPack]) -> None:
    stored.sort(key=lambda entry: read_header(entry[0]).first + entry[1], reverse=True)


def _build_groups(packs: Sequence[Pack], labels: GroupMetadata) -> Iterator[FiredGroup]:
    """Cut out group after group of packs that are in order of their first arrival."""
    places = GroupRows(packs)
    alike = None if labels.differs_by_group else labels.builder_for(None, places.max_event_time)
    uniform = len({meta for pack in packs for meta in pack.metas}) == 1
    spelt = labels.differs_by_group and any(
        read_key_spelling(meta) for pack in packs for meta in pack.metas
    )
    for first, key, newest, segments in places.iterate_groups():
        spelt_key = (_first_spelling(segments, first) or key) if spelt else key
        metas = alike or labels.builder_for(spelt_key, newest)
        messages: Batch
        if places.is_shared and not places.is_interleaved:
            shared = [(pack, index) for pack, index in segments if isinstance(pack, CachedPack)]
            messages = LazyBatch(CachedGroup(shared, metas))
        elif uniform:
            payloads = [raw for pack, index in segments for raw in pack.group_payloads(index)]
            messages = metas.build_messages(
                payloads, packs[0].metas, None, _known_documents(segments)
            )
        else:
            messages = []
            for pack, index in segments:
                ids = None if pack.meta_ids is None else pack.meta_ids[pack.group_slice(index)]
                documents = _known_documents([(pack, index)])
                messages += metas.build_messages(
                    pack.group_payloads(index), pack.metas, ids, documents
                )
        ordered = _sort_by_arrival(segments, messages) if places.is_interleaved else messages
        yield FiredGroup(first, key, ordered)
        if places.is_shared:
            _cache_documents(segments, messages)


def _first_spelling(segments: list[tuple[Pack, int]], first: int) -> bytes | None:
    """Return how the first message of a group spells its key, if it does so otherwise."""
    for pack, index in segments:
        start = pack.starts[index]
        # The segments follow one another where packs have let go of the arrivals.
        if not len(pack.arrivals) or pack.arrivals[start] == first:
            return read_key_spelling(
                pack.metas[0 if pack.meta_ids is None else pack.meta_ids[start]]
            )
    return None


def _sort_by_arrival(segments: list[tuple[Pack, int]], messages: Batch) -> Batch:
    arrivals = np.concatenate([pack.arrivals[pack.group_slice(index)] for pack, index in segments])
    if not np.any(np.diff(arrivals) < 0):
        return messages
    order = np.argsort(arrivals, kind="stable")
    return [messages[i] for i in order.tolist()]


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


class CachedPack(Pack):
    """A pack that remembers what was cut out of it, and the documents that this turned out to be.

    Attributes:
        documents: by group, the messages' documents, once a window's pipeline has parsed them.
    """

    __slots__ = ("documents", "_payloads", "_whole", "_columns")

    def __init__(self, body: PackBytes, shift: int = 0) -> None:
        """Unpack; see `Pack`."""
        super().__init__(body, shift)
        self.documents: dict[int, list[Any]] = {}
        self._payloads: dict[int, list[bytes]] = {}
        self._whole: PackColumns | None = None
        self._columns: dict[tuple[int, str], list[Any]] = {}

    def group_payloads(self, index: int) -> list[bytes]:
        """Return the payloads of one group; the list is shared."""
        payloads = self._payloads.get(index)
        if payloads is None:
            payloads = self._payloads[index] = super().group_payloads(index)
        return payloads

    def parse_group(self, index: int) -> list[Any]:
        """Return the documents of one group; the list is shared.

        Raises:
            ValueError, MessageError: one of its payloads is not JSON.
        """
        documents = self.documents.get(index)
        if documents is None:
            documents = self.documents[index] = parse_payloads(self.group_payloads(index))
        return documents

    def read_column(self, index: int, name: str, of: Column) -> list[Any]:
        """Return what a function of this name gives for the documents of one group; as `parsed`."""
        values = self._columns.get((index, name))
        if values is None:
            values = self._columns[index, name] = of(self.parse_group(index))
        return values

    def merge_messages(self) -> PackColumns:
        """Return all messages in order of arrival, however they are grouped; they are shared."""
        if self._whole is None:
            self._whole = merge_packs([self], grouped=False)
        return self._whole


PackSegments = list[tuple[Pack, int]]


class CachedGroup:
    """A group of a window whose packs other windows hold too; see `lazy_batch.Content`."""

    def __init__(self, segments: list[tuple[CachedPack, int]], metas: MessageBuilder) -> None:
        """Take where its messages are, one after another, and what adds their metadata."""
        self._segments = segments
        self._metas = metas
        self.size = sum([pack.starts[index + 1] - pack.starts[index] for pack, index in segments])

    def first(self) -> Message:
        """Return the first message."""
        pack, index = self._segments[0]
        meta = 0 if pack.meta_ids is None else int(pack.meta_ids[pack.starts[index]])
        known = pack.documents.get(index)
        docs = None if known is None else known[:1]
        return self._metas.build_messages(
            pack.group_payloads(index)[:1], [pack.metas[meta]], None, docs
        )[0]

    def messages(self) -> Batch:
        """Return all messages."""
        batch: Batch = []
        for pack, index in self._segments:
            ids = None if pack.meta_ids is None else pack.meta_ids[pack.group_slice(index)]
            docs = pack.documents.get(index)
            batch += self._metas.build_messages(pack.group_payloads(index), pack.metas, ids, docs)
        return batch

    def parse(self) -> None:
        """Parse the documents of all messages."""
        for pack, index in self._segments:
            pack.parse_group(index)

    def documents(self) -> list[Any]:
        """Return the documents of all messages."""
        return [doc for pack, index in self._segments for doc in pack.parse_group(index)]

    def column(self, name: str, of: Column) -> list[Any]:
        """Return the results of a function for all documents, cached by `name`."""
        values: list[Any] = []
        for pack, index in self._segments:
            values += pack.read_column(index, name, of)
        return values


def _known_documents(segments: PackSegments) -> list[Any] | None:
    """Return the documents of a group's messages, `UNPARSED` where one is not known yet.

    Returns:
        None when none of them is known.
    """
    documents: list[Any] = []
    some = False
    for pack, index in segments:
        known = pack.documents.get(index) if isinstance(pack, CachedPack) else None
        if known is None:
            documents += [UNPARSED] * (pack.starts[index + 1] - pack.starts[index])
        else:
            documents += known
            some = True
    return documents if some else None


def _cache_documents(segments: PackSegments, messages: Batch) -> None:
    """Keep the documents that a window's pipeline has parsed, for the windows that follow.

    Args:
        segments: where the messages are from.
        messages: in the order of the segments.
    """
    if isinstance(messages, LazyBatch) and messages.content is not None:
        return  # what was parsed is in the packs already
    if not messages or not messages[0].has_doc():
        return
    at = 0
    for pack, index in segments:
        until = at + pack.starts[index + 1] - pack.starts[index]
        part = messages[at:until]
        at = until
        if not isinstance(pack, CachedPack) or index in pack.documents:
            continue
        if all(message.has_doc() for message in part):
            pack.documents[index] = [message.doc for message in part]


class PaneCache:
    """The unpacked panes of one step, as long as a window needs them."""

    def __init__(self, keep: PaneStore) -> None:
        """Take the store's side of it."""
        self._keep = keep
        self._packs: dict[int, list[CachedPack]] = {}
        self._parts: dict[int, PaneParts] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no earlier window of the step has left anything."""
        return not self._packs and not self._parts

    def load_parts(self, pane: Pane) -> PaneParts:
        """Return the parts of a pane, its aggregated groups merged; they stay in the store."""
        parts = self._parts.get(pane.pane)
        if parts is None:
            parts = self._parts[pane.pane] = PaneParts(self._keep.load_packs(pane))
            parts.merge_groups()
        return parts

    def load_packs(self, pane: Pane) -> list[CachedPack]:
        """Return the packs of a pane; they stay in the store."""
        packs = self._packs.get(pane.pane)
        if packs is None:
            packs = [CachedPack(body, shift) for body, shift in self._keep.load_packs(pane)]
            self._packs[pane.pane] = packs
        return packs

    def evict(self, pane: int) -> None:
        """Forget a pane that no later window holds."""
        self._packs.pop(pane, None)
        self._parts.pop(pane, None)
