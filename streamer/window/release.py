"""From packs to messages: a window in order of arrival, group after group where it is keyed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from streamer.lazy_batch import LazyBatch
from streamer.message import Batch
from streamer.window.merge import merge
from streamer.window.metadata import spelling_of
from streamer.window.metas import Labels, Released
from streamer.window.pack import Columns, Pack, Stored, peek
from streamer.window.places import Places
from streamer.window.shelf import SharedGroup, SharedPack, documents_of, remember

AnyPack = TypeVar("AnyPack", bound=Pack)


def release(stored: list[Stored], labels: Labels) -> Iterator[Released]:
    """Give the messages of a window.

    Args:
        stored: its packs; the list is emptied, so that they need not be held any longer.
        labels: says what messages are told of the window.

    Returns:
        The groups in order of first arrival; or all messages together, when not all packs are
        grouped by the same key.
    """
    key_ids = {peek(body).key_id for body, _ in stored}
    if len(key_ids) == 1 and None not in key_ids:
        _newest_first(stored)
        packs: list[Pack] = []
        while stored:
            packs.append(Pack(*stored.pop()))
        yield from _by_group(packs, labels)
    else:
        yield from release_whole(stored, labels)


def release_whole(stored: list[Stored], labels: Labels) -> Iterator[Released]:
    """Give all messages of a window together, however they are grouped; else as `release`."""
    first = min(peek(body).first + shift for body, shift in stored)
    return _whole(first, in_order(stored), labels)


def release_whole_shared(packs: list[SharedPack], labels: Labels) -> Iterator[Released]:
    """Give a window as `release_whole` does, from packs that other windows hold too."""
    packs = sorted(packs, key=lambda pack: pack.header.first)
    return _whole(packs[0].header.first, map(_merged, _clusters(packs)), labels)


def _whole(first: int, parts: Iterable[Columns], labels: Labels) -> Iterator[Released]:
    # What messages are told may be known only when all of them have been seen.
    found = []
    times: list[int | None] = []
    for columns in parts:
        found.append((columns.payloads, columns.metas, columns.meta_ids))
        times.append(None if columns.newest is None else int(columns.newest[0]))
        del columns
    metas = labels.of(None, newest_of(times))
    messages: Batch = []
    found.reverse()
    while found:
        messages += metas.messages(*found.pop())
    yield Released(first, None, messages)


def newest_of(times: Iterable[int | None]) -> int | None:
    """Return the largest of some event times; None when it was not kept everywhere."""
    newest: int | None = None
    for time in times:
        if time is None:
            return None
        newest = time if newest is None else max(newest, time)
    return newest


def release_shared(packs: list[SharedPack], labels: Labels) -> Iterator[Released] | None:
    """Give the messages of a window as `release` does, from packs that other windows hold too.

    What a pipeline parses while it has a group is kept in the packs.

    Returns:
        None when not all packs are grouped by the same key: then nothing is shared.
    """
    key_ids = {pack.header.key_id for pack in packs}
    if len(key_ids) != 1 or None in key_ids:
        return None
    return _by_group(sorted(packs, key=lambda pack: pack.header.first), labels)


def in_order(stored: list[Stored]) -> Iterator[Columns]:
    """Give all messages in order of arrival, as many at a time as cannot be told apart.

    Args:
        stored: packs; the list is emptied.
    """
    _newest_first(stored)
    opened = (Pack(*stored.pop()) for _ in range(len(stored)))
    for cluster in _clusters(opened):
        yield merge(cluster, grouped=False)
        del cluster


def _merged(cluster: list[SharedPack]) -> Columns:
    return cluster[0].whole() if len(cluster) == 1 else merge(cluster, grouped=False)


def _clusters(packs: Iterable[AnyPack]) -> Iterator[list[AnyPack]]:
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


def _newest_first(stored: list[Stored]) -> None:
    stored.sort(key=lambda entry: peek(entry[0]).first + entry[1], reverse=True)


def _by_group(packs: Sequence[Pack], labels: Labels) -> Iterator[Released]:
    """Cut out group after group of packs that are in order of their first arrival."""
    places = Places(packs)
    alike = None if labels.by_group else labels.of(None, places.newest)
    uniform = len({meta for pack in packs for meta in pack.metas}) == 1
    spelt = labels.by_group and any(spelling_of(meta) for pack in packs for meta in pack.metas)
    for first, key, newest, segments in places.groups():
        told = (_spelling(segments, first) or key) if spelt else key
        metas = alike or labels.of(told, newest)
        messages: Batch
        if places.shared and not places.interleaved:
            shared = [(pack, index) for pack, index in segments if isinstance(pack, SharedPack)]
            messages = LazyBatch(SharedGroup(shared, metas))
        elif uniform:
            payloads = [raw for pack, index in segments for raw in pack.group(index)]
            messages = metas.messages(payloads, packs[0].metas, None, documents_of(segments))
        else:
            messages = []
            for pack, index in segments:
                ids = None if pack.meta_ids is None else pack.meta_ids[pack.span(index)]
                documents = documents_of([(pack, index)])
                messages += metas.messages(pack.group(index), pack.metas, ids, documents)
        ordered = _sorted(segments, messages) if places.interleaved else messages
        yield Released(first, key, ordered)
        if places.shared:
            remember(segments, messages)


def _spelling(segments: list[tuple[Pack, int]], first: int) -> bytes | None:
    """Return how the first message of a group spells its key, if it does so otherwise."""
    for pack, index in segments:
        start = pack.starts[index]
        # The segments follow one another where packs have let go of the arrivals.
        if not len(pack.arrivals) or pack.arrivals[start] == first:
            return spelling_of(pack.metas[0 if pack.meta_ids is None else pack.meta_ids[start]])
    return None


def _sorted(segments: list[tuple[Pack, int]], messages: Batch) -> Batch:
    arrivals = np.concatenate([pack.arrivals[pack.span(index)] for pack, index in segments])
    if not np.any(np.diff(arrivals) < 0):
        return messages
    order = np.argsort(arrivals, kind="stable")
    return [messages[i] for i in order.tolist()]
