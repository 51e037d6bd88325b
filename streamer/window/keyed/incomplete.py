"""Messages that no count window will hold: before a first window, or since the input has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from streamer.window.emission import Emission
from streamer.window.keyed.lates import Dropped, messages_of
from streamer.window.keyed.ledger import Ledger
from streamer.window.status import Counters


def dropped_incomplete(
    incomplete: Mapping[bytes, list[int]], ledger: Ledger, counters: Counters, handed_on: bool
) -> Iterator[Emission]:
    """Count them as dropped; give them to `late_output` if they are handed on.

    Args:
        incomplete: by key, their arrival numbers.
        ledger: where they are.
        counters: the shard's.
        handed_on: whether somebody wants them.
    """
    if not incomplete:
        return
    counters.drop("incomplete", sum(map(len, incomplete.values())))
    if not handed_on:
        return
    claims = {key: (arrivals[0], arrivals[-1]) for key, arrivals in incomplete.items()}
    found = ledger.find(claims)
    for key in sorted(claims, key=lambda key: claims[key]):
        first, last = found.starts[key]
        wanted = np.isin(found.arrivals[first:last], incomplete[key])
        places = (np.flatnonzero(wanted) + first).tolist()
        dropped = [
            Dropped(int(found.arrivals[at]), found.sheets[found.pages[at]], int(found.rows[at]))
            for at in places
        ]
        yield Emission(None, messages_of(dropped, "incomplete"), "dropped")
