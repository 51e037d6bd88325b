"""Some groups of what parts of a mapping have come to, for keys that go to another shard."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from streamer.window.aggregate.any_all import AnyAllState
from streamer.window.aggregate.count_by import CountByState
from streamer.window.aggregate.distinct import DistinctState
from streamer.window.aggregate.filtered import FilteredState
from streamer.window.aggregate.first_last import FirstLastState
from streamer.window.aggregate.partial_aggregates import PartialAggregates
from streamer.window.aggregate.string_columns import drop_unused_texts
from streamer.window.aggregate.sum_min_max import SumMinMaxState
from streamer.window.aggregate.top_k import TopKState
from streamer.window.settings.int_codec import Ints


def select_groups(groups: PartialAggregates, indices: Ints) -> PartialAggregates:
    """Return some groups.

    Args:
        groups: all of them.
        indices: their places, ascending, one at least.
    """
    places = indices.tolist()
    return PartialAggregates(
        groups.text,
        groups.key_id,
        [groups.keys[place] for place in places],
        groups.counts[indices],
        groups.arrivals[indices],
        [groups.payloads[place] for place in places],
        [groups.metas[place] for place in places],
        groups.last_arrival,
        [select_state(state, indices) for state in groups.states],
        None if groups.max_times is None else groups.max_times[indices],
    )


@singledispatch
def select_state(state: Any, indices: Ints) -> Any:
    """Return what a part has come to in some groups.

    Args:
        state: that of an accumulator (`folds.accumulators`).
        indices: the groups' places, ascending.
    """
    raise TypeError(f"no groups can be taken out of {type(state).__name__}")


@select_state.register
def _(state: np.ndarray, chosen: Ints) -> Ints:
    return state[chosen]


@select_state.register
def _(state: SumMinMaxState, chosen: Ints) -> SumMinMaxState:
    return SumMinMaxState(state.values[chosen], _renumber(state.invalid, chosen))


@select_state.register
def _(state: AnyAllState, chosen: Ints) -> AnyAllState:
    return AnyAllState(state.decided_at[chosen], _renumber(state.invalid, chosen))


@select_state.register
def _(state: FirstLastState, chosen: Ints) -> FirstLastState:
    kept = np.isin(state.groups, chosen)
    groups = np.searchsorted(chosen, state.groups[kept])
    return FirstLastState(groups, state.values[kept], state.arrivals[kept], len(chosen))


@select_state.register
def _(state: CountByState, chosen: Ints) -> CountByState:
    at = _find_entries(state.counts, chosen)
    table, ids = drop_unused_texts(state.table, state.ids[at])
    counts = state.counts[chosen]
    bad = _renumber(state.invalid, chosen)
    return CountByState(table, counts, np.cumsum(counts), ids, state.times[at], bad)


@select_state.register
def _(state: DistinctState, chosen: Ints) -> DistinctState:
    at = _find_entries(state.counts, chosen)
    table, ids = drop_unused_texts(state.table, state.ids[at])
    counts = state.counts[chosen]
    arrivals = state.arrivals[at] if len(state.arrivals) else state.arrivals
    bad = _renumber(state.invalid, chosen)
    return DistinctState(table, counts, np.cumsum(counts), ids, arrivals, bad)


@select_state.register
def _(state: TopKState, chosen: Ints) -> TopKState:
    at = _find_entries(state.counts, chosen)
    counts = state.counts[chosen]
    return TopKState(
        counts,
        np.cumsum(counts),
        state.entries.take(at),
        state.arrivals[at],
        state.kinds[chosen],
        _renumber(state.invalid, chosen),
    )


@select_state.register
def _(state: FilteredState, chosen: Ints) -> FilteredState:
    faults = _renumber(state.faults, chosen)
    return FilteredState(select_state(state.inner, chosen), state.reached[:, chosen], faults)


def _find_entries(counts: Ints, indices: Ints) -> Ints:
    """Return where the entries of some groups are, where those of all stand one after another."""
    kept = np.zeros(len(counts), np.bool_)
    kept[indices] = True
    return np.flatnonzero(np.repeat(kept, counts))


def _renumber(by_group: dict[int, Any], indices: Ints) -> dict[int, Any]:
    if not by_group:
        return {}
    number = {group: place for place, group in enumerate(indices.tolist())}
    return {number[group]: one for group, one in by_group.items() if group in number}
