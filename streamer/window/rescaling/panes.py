"""Shards that keep whole panes (`step`, `pane_step`, `system_step`), cut anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from streamer.errors import StreamerError
from streamer.timestamps import format_rfc3339
from streamer.window.event import EventWindow
from streamer.window.index import Head, Index, Pane
from streamer.window.keep import Arrived, Keep
from streamer.window.rescaling.packs import ShardOf, parts_of
from streamer.window.rescaling.sums import DISAGREE, sum_of
from streamer.window.store import Store
from streamer.window.system import SystemWindow

_FIRST = -(2**63)


def rescale_panes(
    window: SystemWindow | EventWindow,
    shard_of: ShardOf,
    stores: Sequence[Store],
    into: Sequence[Store],
) -> tuple[int, int]:
    """Cut them anew; see `rescale`.

    Returns:
        How many messages are held, in how many panes.
    """
    before = [Index(store, window) for store in stores]
    after = [Index(store, window) for store in into]
    keeps = [Keep(store, index) for store, index in zip(into, after, strict=True)]
    head = _head([index.head for index in before])
    for number, index in enumerate(after):
        index.head = replace(head, buckets={})
        if number:
            index.head.counters = sum_of([])
    panes = set()
    messages = 0
    for store, index in zip(stores, before, strict=True):
        keep = Keep(store, index)
        for pane in index.panes(_FIRST, 2**63 - 1):
            _move(window, pane, keep, keeps, after, shard_of)
            panes.add(pane.pane)
            messages += pane.count
    held = sum(index.summary()[0] for index in after)
    if held != messages:
        raise StreamerError(
            f"the shards held {messages} messages and would hold {held}: this is a bug; the "
            "checkpoint stays as it is"
        )
    for index in after:
        index.save()
    return messages, len(panes)


def _move(
    window: SystemWindow | EventWindow,
    pane: Pane,
    keep: Keep,
    keeps: Sequence[Keep],
    after: Sequence[Index],
    shard_of: ShardOf,
) -> None:
    found: dict[int, list[Arrived]] = defaultdict(list)
    for stored in keep.take(pane):
        for shard, part in parts_of(stored, shard_of):
            found[shard].append(part)
    for shard, parts in sorted(found.items()):
        known = after[shard].pane(pane.pane)
        alone = len(found) == 1 and not known.count
        keeps[shard].put(pane.pane, parts)
        if alone:
            known.runs = [list(run) for run in pane.runs]
            continue
        horizons = {horizon for horizon, _ in (*known.runs, *pane.runs)}
        if len(horizons) > 1:
            _check_expiry(window, pane.pane)
        known.runs = [[max(horizons), known.count]] if horizons else []


def _check_expiry(window: SystemWindow | EventWindow, pane: int) -> None:
    """Refuse to mix messages that had missed a window with such that had not.

    Under back pressure, those count as expired that were in no window: it is told by their number.
    """
    if isinstance(window, SystemWindow) and window.on_expired == "drop":
        until = format_rfc3339(window.grid.last_end(pane))
        raise StreamerError(
            "some messages came after the first of their sliding windows had closed, and which "
            f"these are is not known key by key; try again when the windows up to {until} have "
            "closed, or with `on_expired: keep`"
        )


def _head(heads: Sequence[Head]) -> Head:
    """Return what all shards know, with the sum of what they count."""
    first = heads[0]
    for other in heads[1:]:
        if (other.clock, other.horizon, other.stream) != (first.clock, first.horizon, first.stream):
            raise StreamerError(DISAGREE)
    newest = [head.newest for head in heads if head.newest is not None]
    expired = sorted({(start, end) for head in heads for start, end in head.expired})
    return replace(
        first,
        newest=max(newest, default=None),
        next_arrival=max(head.next_arrival for head in heads),
        expired=[[start, end] for start, end in expired],
        counters=sum_of([head.counters for head in heads]),
    )
