"""Some groups of what parts of a mapping have come to, for keys that go to another shard."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from streamer.window.folds.chosen import ChosenState
from streamer.window.folds.counted import CountedState
from streamer.window.folds.distinct import DistinctState
from streamer.window.folds.groups import Groups
from streamer.window.folds.numbers import NumbersState
from streamer.window.folds.picked import PickedState
from streamer.window.folds.ranked import RankedState
from streamer.window.folds.tested import TestedState
from streamer.window.folds.texts import needed
from streamer.window.ints import Ints


def groups_of(groups: Groups, chosen: Ints) -> Groups:
    """Return some groups.

    Args:
        groups: all of them.
        chosen: their places, ascending, one at least.
    """
    places = chosen.tolist()
    return Groups(
        groups.text,
        groups.key_id,
        [groups.keys[place] for place in places],
        groups.counts[chosen],
        groups.arrivals[chosen],
        [groups.payloads[place] for place in places],
        [groups.metas[place] for place in places],
        groups.last,
        [state_of(state, chosen) for state in groups.states],
        None if groups.newest is None else groups.newest[chosen],
    )


@singledispatch
def state_of(state: Any, chosen: Ints) -> Any:
    """Return what a part has come to in some groups.

    Args:
        state: that of an accumulator (`folds.accumulators`).
        chosen: the groups' places, ascending.
    """
    raise TypeError(f"no groups can be taken out of {type(state).__name__}")


@state_of.register
def _(state: np.ndarray, chosen: Ints) -> Ints:
    return state[chosen]


@state_of.register
def _(state: NumbersState, chosen: Ints) -> NumbersState:
    return NumbersState(state.values[chosen], _renumbered(state.bad, chosen))


@state_of.register
def _(state: TestedState, chosen: Ints) -> TestedState:
    return TestedState(state.decided[chosen], _renumbered(state.bad, chosen))


@state_of.register
def _(state: PickedState, chosen: Ints) -> PickedState:
    kept = np.isin(state.groups, chosen)
    groups = np.searchsorted(chosen, state.groups[kept])
    return PickedState(groups, state.values[kept], state.arrivals[kept], len(chosen))


@state_of.register
def _(state: CountedState, chosen: Ints) -> CountedState:
    at = _entries(state.counts, chosen)
    table, ids = needed(state.table, state.ids[at])
    counts = state.counts[chosen]
    bad = _renumbered(state.bad, chosen)
    return CountedState(table, counts, np.cumsum(counts), ids, state.times[at], bad)


@state_of.register
def _(state: DistinctState, chosen: Ints) -> DistinctState:
    at = _entries(state.counts, chosen)
    table, ids = needed(state.table, state.ids[at])
    counts = state.counts[chosen]
    arrivals = state.arrivals[at] if len(state.arrivals) else state.arrivals
    bad = _renumbered(state.bad, chosen)
    return DistinctState(table, counts, np.cumsum(counts), ids, arrivals, bad)


@state_of.register
def _(state: RankedState, chosen: Ints) -> RankedState:
    at = _entries(state.counts, chosen)
    counts = state.counts[chosen]
    return RankedState(
        counts,
        np.cumsum(counts),
        state.entries.take(at),
        state.arrivals[at],
        state.kinds[chosen],
        _renumbered(state.bad, chosen),
    )


@state_of.register
def _(state: ChosenState, chosen: Ints) -> ChosenState:
    faults = _renumbered(state.faults, chosen)
    return ChosenState(state_of(state.inner, chosen), state.reached[:, chosen], faults)


def _entries(counts: Ints, chosen: Ints) -> Ints:
    """Return where the entries of some groups are, where those of all stand one after another."""
    kept = np.zeros(len(counts), np.bool_)
    kept[chosen] = True
    return np.flatnonzero(np.repeat(kept, counts))


def _renumbered(by_group: dict[int, Any], chosen: Ints) -> dict[int, Any]:
    if not by_group:
        return {}
    number = {group: place for place, group in enumerate(chosen.tolist())}
    return {number[group]: one for group, one in by_group.items() if group in number}
