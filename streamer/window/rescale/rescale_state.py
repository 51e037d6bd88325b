"""Cuts the state of all shards anew."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamer.window.rescale.join_shards import rescale_join_shards
from streamer.window.rescale.keyed_shards import rescale_keyed_shards
from streamer.window.rescale.pane_shards import rescale_pane_shards
from streamer.window.rescale.table_join_shards import rescale_table_join_shards
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import Join, TableJoin
from streamer.window.state.keyed_values import rescale_keyed_values
from streamer.window.state_store import StateStore


@dataclass(frozen=True, slots=True)
class RescaleResult:
    """Amount of state that went to the shards that there are now.

    Attributes:
        messages: how many, aggregated ones among them.
        windows: open windows of keys; or panes, where all keys share the windows.
        sliced: whether a window may have several panes.
    """

    messages: int
    windows: int
    sliced: bool = False


def rescale(
    window: Window,
    keyed: bool,
    stores: Sequence[StateStore],
    into: Sequence[StateStore],
) -> RescaleResult:
    """Cut the state of all shards anew.

    Args:
        window: the window's settings.
        keyed: whether messages are spread over the shards by a key; else the first has all.
        stores: by shard, its state, as of the same micro-batch.
        into: empty ones, by shard, as many as there are to be.

    Raises:
        StreamerError: this state cannot be cut anew; the text says why, and what to do.
    """
    is_spread = window.keyed or (keyed and window.spreads_groups)
    shard_of = make_shard_function(len(into)) if is_spread else _first_shard
    rescale_keyed_values(shard_of, stores, into)
    if isinstance(window, EventWindow) and isinstance(window.kind, TableJoin):
        return RescaleResult(*rescale_table_join_shards(window, shard_of, stores, into))
    if isinstance(window, EventWindow) and isinstance(window.kind, Join):
        return RescaleResult(*rescale_join_shards(window, shard_of, stores, into))
    if isinstance(window, EventWindow) and window.strategy == "keys":
        return RescaleResult(*rescale_keyed_shards(window, shard_of, stores, into))
    return RescaleResult(
        *rescale_pane_shards(window, shard_of, stores, into), window.grid.overlapping
    )


def make_shard_function(shards: int) -> Callable[[bytes], int]:
    """Return what says the shard of a key; stage 1 says the same (`KeyGroups`)."""
    return lambda key: zlib.crc32(key) % shards


def _first_shard(key: bytes) -> int:
    return 0
