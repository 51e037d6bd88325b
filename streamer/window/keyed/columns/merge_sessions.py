"""Merges messages and open sessions into sessions, for all keys at once, by sorting."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamer.window.keyed.columns.numeric_aggregates import SessionGroups
from streamer.window.settings.int_codec import Ints

MAX_TIME_DISTANCE_NS: Final = 1 << 61
"""Messages with larger times, and sessions with larger gaps, take the row path: here, differences
must not overflow."""

_MAX_SORT_CODE: Final = 1 << 62


def group_sessions(
    codes: Ints, starts: Ints, ends: Ints, arrivals: Ints, gap: int
) -> SessionGroups:
    """Group messages and open sessions into sessions.

    Args:
        codes: by message or session, the number of its key.
        starts: its first event time, ns, a message's own; less than `MAX_TIME_DISTANCE_NS` from 0.
        ends: its last event time.
        arrivals: its smallest arrival number.
        gap: the largest time between two neighbours of a session, ns.
    """
    low, width = _time_span(starts, ends)
    together = (int(codes.max()) + 1) * width < _MAX_SORT_CODE
    if together:
        order = np.argsort(codes * width + (starts - low), kind="stable")
    else:
        order = np.lexsort((starts, codes))
    keys, begin, end = codes[order], starts[order], ends[order]
    if (begin == end).all():
        reached = end
    elif together:
        base = keys * width
        reached = np.maximum.accumulate(base + (end - low)) - base + low
    else:
        reached = _running_max_ends(keys, end)
    new = np.ones(len(order), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (begin[1:] - reached[:-1] > gap)
    return SessionGroups(order, np.flatnonzero(new), np.cumsum(new) - 1, arrivals)


def _time_span(starts: Ints, ends: Ints) -> tuple[int, int]:
    low = int(starts.min())
    return low, int(ends.max()) - low + 1


def _running_max_ends(keys: Ints, ends: Ints) -> Ints:
    """Return by entry the largest end so far of its key; entries are sorted by key."""
    known, ranks = np.unique(ends, return_inverse=True)
    base = keys * len(known)
    max_ends: Ints = known[np.maximum.accumulate(base + ranks) - base]
    return max_ends
