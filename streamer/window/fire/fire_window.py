"""From packs to messages: a window in order of arrival, group after group where it is keyed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from streamer.core.lazy_batch import LazyBatch
from streamer.core.message import Batch
from streamer.window.fire.group_rows import GroupRows
from streamer.window.fire.pane_cache import (
    CachedGroup,
    CachedPack,
    cache_documents,
    known_documents,
)
from streamer.window.pack.merge_packs import merge_packs
from streamer.window.pack.message_builder import FiredGroup, GroupMetadata
from streamer.window.pack.metadata_codec import read_key_spelling
from streamer.window.pack.pack_codec import Pack, PackColumns, StoredPack, read_header

AnyPack = TypeVar("AnyPack", bound=Pack)


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
    metas = labels.builder_for(None, max_time_of(times))
    messages: Batch = []
    columns_list.reverse()
    while columns_list:
        messages += metas.build_messages(*columns_list.pop())
    yield FiredGroup(first, None, messages)


def max_time_of(times: Iterable[int | None]) -> int | None:
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
                payloads, packs[0].metas, None, known_documents(segments)
            )
        else:
            messages = []
            for pack, index in segments:
                ids = None if pack.meta_ids is None else pack.meta_ids[pack.group_slice(index)]
                documents = known_documents([(pack, index)])
                messages += metas.build_messages(
                    pack.group_payloads(index), pack.metas, ids, documents
                )
        ordered = _sort_by_arrival(segments, messages) if places.is_interleaved else messages
        yield FiredGroup(first, key, ordered)
        if places.is_shared:
            cache_documents(segments, messages)


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
