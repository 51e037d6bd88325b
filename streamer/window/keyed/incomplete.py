"""Drops messages that no count window holds: before a key's first window, or at end of input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from streamer.window.contract import Counters, Emission
from streamer.window.keyed.late_messages import DroppedRow, build_dropped_messages
from streamer.window.keyed.message_store import MessageStore


def drop_incomplete(
    incomplete: Mapping[bytes, list[int]],
    store: MessageStore,
    counters: Counters,
    sends_to_late_output: bool,
) -> Iterator[Emission]:
    """Count messages as dropped; emit them if there is a `late_output`.

    Args:
        incomplete: by key, the arrival numbers of the messages.
        store: holds the messages.
        counters: the shard's.
        sends_to_late_output: whether there is a `late_output`.
    """
    if not incomplete:
        return
    counters.count_dropped("incomplete", sum(map(len, incomplete.values())))
    if not sends_to_late_output:
        return
    claims = {key: (arrivals[0], arrivals[-1]) for key, arrivals in incomplete.items()}
    located = store.find(claims)
    for key in sorted(claims, key=lambda key: claims[key]):
        first, last = located.bounds[key]
        is_incomplete = np.isin(located.arrivals[first:last], incomplete[key])
        places = (np.flatnonzero(is_incomplete) + first).tolist()
        dropped = [
            DroppedRow(
                int(located.arrivals[at]),
                located.packs[located.pack_numbers[at]],
                int(located.rows[at]),
            )
            for at in places
        ]
        yield Emission(None, build_dropped_messages(dropped, "incomplete"), "dropped")
