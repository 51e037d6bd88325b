"""Some of a pack's messages: those that came out of order go their own ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from streamer.window.fire.source_clocks import cap_lags
from streamer.window.pack.message_columns import distinct_metadata
from streamer.window.pack.pack_codec import Pack, PackColumns, encode_pack, read_header
from streamer.window.settings.int_codec import Ints
from streamer.window.state.pane_store import IncomingPack

_MAX_TIME_NS: Final = 2**63 - 1


class SplitPack(NamedTuple):
    """Some messages of a pack.

    Attributes:
        closed: how many of their windows had closed before each of them came.
        pack: the messages.
        time: the event time of the first of them, ns.
        watermark: the clock before that one, ns.
    """

    closed: int
    pack: IncomingPack
    time: int
    watermark: int


def split_by_closed_windows(
    incoming: IncomingPack,
    base: int | None,
    closes: Iterable[int],
    keep_times: bool = False,
    cap: int | None = None,
) -> Iterator[SplitPack]:
    """Part the messages of a pack by how many of its windows had closed before each of them came.

    Args:
        incoming: the pack, of one pane; it has event times.
        base: the clock before the piece; None when there was none.
        closes: the clocks at which the pane's windows close, ascending.
        keep_times: keep the event times of all messages, and not the largest of each group alone.
        cap: how far other sources let the clock go in the piece; None for any.

    """
    pack = Pack(incoming.body, incoming.shift)
    assert pack.times is not None
    cap_lags(pack, cap)
    clocks = pack.times if pack.lags is None else pack.times + pack.lags
    if base is not None:
        clocks = np.maximum(clocks, base)
    reached = np.array([at for at in closes if at <= _MAX_TIME_NS], np.int64)
    closed = np.searchsorted(reached, clocks, "right")
    payloads = pack.payloads()
    for count in np.unique(closed).tolist():
        rows = np.flatnonzero(closed == count)
        body = encode_pack(_select_messages(pack, payloads, rows, keep_times))
        first = int(pack.times[rows[0]]), int(clocks[rows[0]])
        yield SplitPack(count, IncomingPack(body, 0, read_header(body)), *first)


def _select_messages(
    pack: Pack, payloads: list[bytes], indices: Ints, keep_times: bool
) -> PackColumns:
    """Return some messages of a pack.

    Args:
        pack: it has event times.
        payloads: those of all its messages.
        indices: which messages, ascending, one at least.
        keep_times: with their event times, instead of the largest of each group.
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
    metas, meta_ids = distinct_metadata(pack.metas, ids)
    return PackColumns(
        some,
        np.fromiter(map(len, some), np.int64, len(some)),
        pack.arrivals[indices],
        metas,
        meta_ids,
        keys,
        counts,
        pack.header.key_id or 0,
        None if keep_times else np.maximum.reduceat(times, starts),
        times if keep_times else None,
    )
