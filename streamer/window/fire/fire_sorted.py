"""Windows whose messages come in order of their event times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamer.window.pack.merge_packs import merge_packs
from streamer.window.pack.message_columns import FiredGroup, GroupMetadata
from streamer.window.pack.metadata_codec import read_key_spelling
from streamer.window.pack.pack_codec import Pack, PackColumns


def fire_sorted(packs: Sequence[Pack], labels: GroupMetadata, whole: bool) -> Iterator[FiredGroup]:
    """Give the messages of a window by event time, those of one time by arrival.

    Packs that were stored without event times, before the setting was made, leave their window in
    order of arrival.

    Args:
        packs: one at least.
        labels: gives the metadata of messages.
        whole: give all messages together, however they are grouped.

    Returns:
        The groups in order of first arrival; or all messages together, when not all packs are
        grouped by the same key.
    """
    columns = merge_packs(packs, grouped=not whole, by_time=True)
    counts = np.array([len(columns.payloads)]) if columns.counts is None else columns.counts
    bounds = [0, *np.cumsum(counts).tolist()]
    firsts = np.minimum.reduceat(columns.arrivals, bounds[:-1])
    max_times = _max_times_of(columns, bounds)
    spelt = labels.differs_by_group and any(read_key_spelling(meta) for meta in columns.metas)
    alike = None
    if not labels.differs_by_group:
        alike = labels.builder_for(None, None if max_times is None else max(max_times))
    for group in np.argsort(firsts, kind="stable").tolist():
        start, end = bounds[group], bounds[group + 1]
        key = None if columns.keys is None else columns.keys[group]
        builder = alike
        if builder is None:
            spelt_key = (_spelling_at(columns, start) or key) if spelt else key
            builder = labels.builder_for(spelt_key, None if max_times is None else max_times[group])
        ids = None if columns.meta_ids is None else columns.meta_ids[start:end]
        messages = builder.build_messages(columns.payloads[start:end], columns.metas, ids)
        yield FiredGroup(int(firsts[group]), key, messages)


def _max_times_of(columns: PackColumns, bounds: list[int]) -> list[int] | None:
    """Return the largest event time of each group, ns; None where it was not kept."""
    times = columns.max_times
    if columns.times is not None:
        times = np.maximum.reduceat(columns.times, bounds[:-1])
    return None if times is None else times.tolist()


def _spelling_at(columns: PackColumns, row: int) -> bytes | None:
    """Return a message's own spelling of its key; None if it is the key itself."""
    ids = columns.meta_ids
    return read_key_spelling(columns.metas[0 if ids is None else ids[row]])
