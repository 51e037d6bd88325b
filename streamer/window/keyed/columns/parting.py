"""Sessions that cannot go on as columns become records of keys, and a pack of first messages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamer.window.event import OWN_KEY
from streamer.window.keyed.columns.lanes import Lanes
from streamer.window.keyed.columns.opened import Opened
from streamer.window.keyed.drawers import Dues
from streamer.window.keyed.folded import Folded
from streamer.window.keyed.rules import Rules
from streamer.window.keyed.state import FOREVER, KeyState, Window
from streamer.window.pack import Columns, encode, lengths_of

Record = tuple[bytes, KeyState, Dues]


def records_of(sessions: Opened, lanes: Lanes, number: int, rules: Rules) -> Iterator[Record]:
    """Give the records of keys.

    Args:
        sessions: all that the keys have open.
        lanes: the parts of their mapping.
        number: the mapping's, among those that windows are folded for.
        rules: of sessions.
    """
    by_key: dict[bytes, KeyState] = {}
    for key, start, end, first, count, active, states in zip(
        sessions.keys,
        sessions.starts.tolist(),
        sessions.ends.tolist(),
        sessions.firsts.tolist(),
        sessions.counts.tolist(),
        sessions.active.tolist(),
        lanes.states(sessions.numbers, sessions.counts),
        strict=True,
    ):
        folded = Folded(number, states, end, count - 1)
        window = Window(start, end, first, count, active, changed=False, folded=folded)
        state = by_key.setdefault(key, KeyState())
        state.windows.append(window)
        state.oldest = min(state.oldest, start)
    for key, state in by_key.items():
        due = min(rules.closes_at(window) for window in state.windows)
        yield key, state, (min(due, FOREVER), FOREVER, FOREVER)


def pack_of(sessions: Opened, keyed: bool) -> bytes:
    """Return a pack of the first messages of sessions; each is told to be of the session's start.

    The ledger finds it by any time that lies in the session.
    """
    numbers: dict[bytes, int] = {}
    groups = np.array([numbers.setdefault(key, len(numbers)) for key in sessions.keys], np.int64)
    order = np.lexsort((sessions.firsts, groups))
    some = sessions.take(order)
    used, ids = np.unique(some.meta_ids, return_inverse=True)
    columns = Columns(
        some.payloads,
        lengths_of(some.payloads),
        some.firsts,
        [some.metas[place] for place in used.tolist()],
        ids.astype(np.int64) if len(used) > 1 else None,
        times=some.starts,
    )
    if keyed:
        columns.keys = list(numbers)
        columns.key_id = OWN_KEY
        columns.counts = np.bincount(groups, minlength=len(numbers))
    return encode(columns)
