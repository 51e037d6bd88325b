"""Shards that keep whole panes (`grid_step`, `pane_step`), cut anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_rfc3339
from streamer.window.rescale.split_packs import ShardOf, split_pack
from streamer.window.rescale.sum_counters import CLOCKS_DISAGREE_TEXT, sum_counters
from streamer.window.settings.window import Window
from streamer.window.state.pane_store import IncomingPack, Pane, PaneHead, PaneIndex, PaneStore
from streamer.window.state_store import StateStore

_MIN_TIME_NS = -(2**63)


def rescale_pane_shards(
    window: Window,
    shard_of: ShardOf,
    stores: Sequence[StateStore],
    into: Sequence[StateStore],
) -> tuple[int, int]:
    """Distribute panes over other shards (`rescale`).

    Returns:
        How many messages are held, in how many panes.
    """
    before = [PaneIndex(store, window) for store in stores]
    after = [PaneIndex(store, window) for store in into]
    keeps = [PaneStore(store, index) for store, index in zip(into, after, strict=True)]
    head = _merge_heads([index.head for index in before])
    for number, index in enumerate(after):
        index.head = replace(head, buckets={})
        if number:
            index.head.counters = sum_counters([])
    panes = set()
    messages = 0
    for store, index in zip(stores, before, strict=True):
        keep = PaneStore(store, index)
        for pane in index.panes_between(_MIN_TIME_NS - 1, 2**63 - 1):
            _move_pane(window, pane, keep, keeps, after, shard_of)
            panes.add(pane.pane)
            messages += pane.count
    held_count = sum(index.summarise()[0] for index in after)
    if held_count != messages:
        raise StreamerError(
            f"the shards held {messages} messages and would hold {held_count}: this is a bug; the "
            "checkpoint stays as it is"
        )
    for index in after:
        index.save()
    return messages, len(panes)


def _move_pane(
    window: Window,
    pane: Pane,
    keep: PaneStore,
    keeps: Sequence[PaneStore],
    after: Sequence[PaneIndex],
    shard_of: ShardOf,
) -> None:
    by_shard: dict[int, list[IncomingPack]] = defaultdict(list)
    for stored in keep.load_packs(pane):
        for shard, part in split_pack(stored, shard_of):
            by_shard[shard].append(part)
    for shard, parts in sorted(by_shard.items()):
        known = after[shard].get_or_create(pane.pane)
        alone = len(by_shard) == 1 and not known.count
        keeps[shard].put(pane.pane, parts)
        if alone:
            known.runs = [list(run) for run in pane.runs]
            continue
        closed_untils = {closed_until for closed_until, _ in (*known.runs, *pane.runs)}
        if len(closed_untils) > 1:
            _check_expiry(window, pane.pane)
        known.runs = [[max(closed_untils), known.count]] if closed_untils else []


def _check_expiry(window: Window, pane: int) -> None:
    """Refuse to mix messages that had missed a window with such that had not.

    Under back pressure, those count as expired that were in no window: it is told by their number.
    """
    if window.drops_expired:
        until = format_rfc3339(window.grid.last_end(pane))
        raise StreamerError(
            "some messages came after the first of their sliding windows had closed, and which "
            f"these are is not known key by key; try again when the windows up to {until} have "
            "closed, or with `on_expired: keep`"
        )


def _merge_heads(heads: Sequence[PaneHead]) -> PaneHead:
    """Return what all shards know, with the sum of what they count."""
    first = heads[0]
    for other in heads[1:]:
        if (other.clock, other.horizon, other.stream) != (first.clock, first.horizon, first.stream):
            raise StreamerError(CLOCKS_DISAGREE_TEXT)
    newest = [head.newest for head in heads if head.newest is not None]
    expired = sorted({(start, end) for head in heads for start, end in head.expired})
    return replace(
        first,
        newest=max(newest, default=None),
        next_arrival=max(head.next_arrival for head in heads),
        expired=[[start, end] for start, end in expired],
        counters=sum_counters([head.counters for head in heads]),
    )
