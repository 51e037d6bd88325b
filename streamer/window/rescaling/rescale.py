"""Cuts the state of all shards anew."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamer.errors import StreamerError
from streamer.window.event import EventWindow
from streamer.window.kinds import Join
from streamer.window.rescaling.keys import rescale_keys
from streamer.window.rescaling.panes import rescale_panes
from streamer.window.store import Store
from streamer.window.system import SystemWindow


@dataclass(frozen=True, slots=True)
class Moved:
    """What was held, and went to the shards that there are now.

    Attributes:
        messages: how many, folded ones among them.
        windows: open windows of keys; or panes, where all keys share the windows.
        sliced: whether a window may have several panes.
    """

    messages: int
    windows: int
    sliced: bool = False


def check_rescalable(window: SystemWindow | EventWindow) -> None:
    """Look whether the state of a window can be cut anew.

    Raises:
        StreamerError: it cannot.
    """
    if isinstance(window, EventWindow) and isinstance(window.kind, Join):
        raise StreamerError(
            "the state of a window_join cannot be cut anew: which messages have found a match is "
            "kept by the numbers that each shard has given them; let the windows out instead "
            "(`streamer -w --on-reset drain`), or begin with another checkpoint"
        )


def rescale(
    window: SystemWindow | EventWindow,
    keyed: bool,
    stores: Sequence[Store],
    into: Sequence[Store],
) -> Moved:
    """Cut the state of all shards anew.

    Args:
        window: the window's settings.
        keyed: whether messages are spread over the shards by a key; else the first has all.
        stores: by shard, its state, as of the same micro-batch.
        into: empty ones, by shard, as many as there are to be.

    Raises:
        StreamerError: this state cannot be cut anew; the text says why, and what to do.
    """
    check_rescalable(window)
    if isinstance(window, EventWindow):
        # Without a window key there is one window for all, and so one shard.
        keyed = window.keyed
    shard_of = by_key(len(into)) if keyed else _first
    if isinstance(window, EventWindow) and window.way == "keys":
        return Moved(*rescale_keys(window, shard_of, stores, into))
    return Moved(*rescale_panes(window, shard_of, stores, into), window.grid.overlapping)


def by_key(shards: int) -> Callable[[bytes], int]:
    """Return what says the shard of a key; stage 1 says the same (`stamps.Groups`)."""
    return lambda key: zlib.crc32(key) % shards


def _first(key: bytes) -> int:
    return 0
