"""Converts sessions that cannot stay columns to records of keys, and a pack of first messages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamer.window.keyed.columns.numeric_aggregates import NumericAggregates
from streamer.window.keyed.columns.open_sessions import OpenSessions
from streamer.window.keyed.key_buckets import Dues
from streamer.window.keyed.state import FOREVER, KeyState, Window
from streamer.window.keyed.window_aggregate import WindowAggregate
from streamer.window.keyed.window_rules import WindowRules
from streamer.window.pack.pack_codec import PackColumns, encode_pack, lengths_of
from streamer.window.settings.event_time_window import WINDOW_KEY_ID

KeyRecord = tuple[bytes, KeyState, Dues]


def to_key_records(
    sessions: OpenSessions, aggregates: NumericAggregates, number: int, rules: WindowRules
) -> Iterator[KeyRecord]:
    """Convert sessions to records of keys.

    Args:
        sessions: all open sessions of the keys.
        aggregates: the aggregates of their mapping.
        number: the number of the mapping, see `KeyedAggregation.mapping_number_of`.
        rules: the rules of sessions.
    """
    by_key: dict[bytes, KeyState] = {}
    for key, start, end, first, count, active, states in zip(
        sessions.keys,
        sessions.starts.tolist(),
        sessions.ends.tolist(),
        sessions.firsts.tolist(),
        sessions.counts.tolist(),
        sessions.active.tolist(),
        aggregates.dump_states(sessions.numbers, sessions.counts),
        strict=True,
    ):
        aggregate = WindowAggregate(number, states, end, count - 1)
        window = Window(start, end, first, count, active, changed=False, aggregate=aggregate)
        state = by_key.setdefault(key, KeyState())
        state.windows.append(window)
        state.oldest = min(state.oldest, start)
    for key, state in by_key.items():
        due = min(rules.close_time(window) for window in state.windows)
        yield key, state, (min(due, FOREVER), FOREVER, FOREVER)


def to_pack(sessions: OpenSessions, keyed: bool) -> bytes:
    """Encode a pack of the first messages of sessions.

    Each has the session's start as its time, so that a look-up by the session's bounds finds it.
    """
    numbers: dict[bytes, int] = {}
    groups = np.array([numbers.setdefault(key, len(numbers)) for key in sessions.keys], np.int64)
    order = np.lexsort((sessions.firsts, groups))
    some = sessions.take(order)
    used, ids = np.unique(some.meta_ids, return_inverse=True)
    columns = PackColumns(
        some.payloads,
        lengths_of(some.payloads),
        some.firsts,
        [some.metas[place] for place in used.tolist()],
        ids.astype(np.int64) if len(used) > 1 else None,
        times=some.starts,
    )
    if keyed:
        columns.keys = list(numbers)
        columns.key_id = WINDOW_KEY_ID
        columns.counts = np.bincount(groups, minlength=len(numbers))
    return encode_pack(columns)
