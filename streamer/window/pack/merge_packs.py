"""Several packs as one, in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from streamer.window.pack.pack_codec import Pack, PackColumns, lengths_of
from streamer.window.settings.int_codec import Ints


def merge_packs(packs: Sequence[Pack], grouped: bool, by_time: bool = False) -> PackColumns:
    """Bring the messages of packs together.

    Args:
        packs: one at least.
        grouped: keep the groups: messages are sorted by group, then by arrival. Only packs that are
            grouped by the same key can keep them; others are sorted by arrival alone.
        by_time: sort by event time, then by arrival. Where one of the packs does not have them,
            all are in order of arrival.
    """
    key_ids = {pack.header.key_id for pack in packs}
    key_id = key_ids.pop() if len(key_ids) == 1 else None
    payloads = [payload for pack in packs for payload in pack.payloads()]
    arrivals = np.concatenate([pack.arrivals for pack in packs])
    metas, meta_ids = _merge_metadata(packs)
    times = None
    if all(pack.times is not None for pack in packs):
        times = np.concatenate([pack.times for pack in packs if pack.times is not None])
    keys = counts = None
    places = (arrivals,) if times is None or not by_time else (arrivals, times)
    if grouped and key_id is not None:
        keys, groups = _merge_groups(packs)
        order = np.lexsort((*places, groups))
        counts = np.bincount(groups, minlength=len(keys))
    else:
        order = np.lexsort(places)
    if np.any(np.diff(order) != 1):
        payloads = list(itemgetter(*order.tolist())(payloads))
        arrivals = arrivals[order]
        meta_ids = None if meta_ids is None else meta_ids[order]
    lengths = lengths_of(payloads)
    newest = _merge_max_times(packs, keys)
    times = None if times is None else times[order]
    return PackColumns(
        payloads, lengths, arrivals, metas, meta_ids, keys, counts, key_id or 0, newest, times
    )


def _merge_max_times(packs: Sequence[Pack], keys: list[bytes] | None) -> Ints | None:
    """Return the largest event time of each group, or of all messages.

    Returns:
        None where they are not known, or follow from the times of all messages.
    """
    if all(pack.max_times is None for pack in packs):
        return None
    times = [one for pack in packs if (one := pack.group_max_times()) is not None]
    if len(times) < len(packs):
        return None
    if keys is None:
        newest: Ints = np.concatenate(times).max(keepdims=True)
        return newest
    number = {key: group for group, key in enumerate(keys)}
    max_times = np.full(len(keys), np.iinfo(np.int64).min)
    for pack, of_groups in zip(packs, times, strict=True):
        groups = [number[key] for key in pack.keys]
        # A group is there once in each of them.
        max_times[groups] = np.maximum(max_times[groups], of_groups)
    return max_times


def select_rows(pack: Pack, rows: Ints) -> PackColumns:
    """Return some messages of a pack, by their places, in their order; their lags are left out."""
    payloads = pack.payloads()
    kept_payloads = [payloads[row] for row in rows.tolist()]
    metas, meta_ids = pack.metas, None
    if pack.meta_ids is not None:
        used, meta_ids = np.unique(pack.meta_ids[rows], return_inverse=True)
        metas = [pack.metas[i] for i in used.tolist()]
        meta_ids = meta_ids.astype(np.int64) if len(metas) > 1 else None
    keys = counts = None
    if pack.header.key_id is not None:
        groups = np.repeat(np.arange(len(pack.keys)), np.diff(np.array(pack.starts)))[rows]
        left, counts = np.unique(groups, return_counts=True)
        keys = [pack.keys[i] for i in left.tolist()]
    return PackColumns(
        kept_payloads,
        lengths_of(kept_payloads),
        pack.arrivals[rows],
        metas,
        meta_ids,
        keys,
        counts,
        pack.header.key_id or 0,
        times=None if pack.times is None else pack.times[rows],
    )


def _merge_metadata(packs: Sequence[Pack]) -> tuple[list[bytes], Ints | None]:
    number: dict[bytes, int] = {}
    ids = []
    for pack in packs:
        renumbered = [number.setdefault(meta, len(number)) for meta in pack.metas]
        if pack.meta_ids is None:
            ids.append(np.full(pack.header.messages, renumbered[0]))
        else:
            ids.append(np.array(renumbered, np.int64)[pack.meta_ids])
    return list(number), np.concatenate(ids) if len(number) > 1 else None


def _merge_groups(packs: Sequence[Pack]) -> tuple[list[bytes], Ints]:
    number: dict[bytes, int] = {}
    groups = []
    for pack in packs:
        renumbered = [number.setdefault(key, len(number)) for key in pack.keys]
        groups.append(np.repeat(np.array(renumbered, np.int64), np.diff(pack.starts)))
    return list(number), np.concatenate(groups)
