"""Some of a pack's messages: those that came out of order go their own ways."""

from __future__ import annotations

import numpy as np

from streamer.window.columns import distinct
from streamer.window.ints import Ints
from streamer.window.pack import Columns, Pack


def chosen(pack: Pack, payloads: list[bytes], indices: Ints) -> Columns:
    """Return some messages of a pack, their largest event times by group instead of all times.

    Args:
        pack: it has event times.
        payloads: those of all its messages.
        indices: which messages, ascending, one at least.
    """
    assert pack.times is not None
    times = pack.times[indices]
    keys = counts = None
    starts = np.zeros(1, np.int64)
    if pack.keys:
        groups = np.repeat(np.arange(len(pack.keys)), np.diff(pack.starts))[indices]
        present, starts, counts = np.unique(groups, return_index=True, return_counts=True)
        keys = [pack.keys[group] for group in present.tolist()]
    some = [payloads[index] for index in indices.tolist()]
    ids = np.zeros(len(indices), np.int64) if pack.meta_ids is None else pack.meta_ids[indices]
    metas, meta_ids = distinct(pack.metas, ids)
    return Columns(
        some,
        np.fromiter(map(len, some), np.int64, len(some)),
        pack.arrivals[indices],
        metas,
        meta_ids,
        keys,
        counts,
        pack.header.key_id or 0,
        np.maximum.reduceat(times, starts),
    )
