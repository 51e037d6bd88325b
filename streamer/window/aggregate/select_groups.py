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
def _(state: np.ndarray, selected: Ints) -> Ints:
    return state[selected]


@select_state.register
def _(state: SumMinMaxState, selected: Ints) -> SumMinMaxState:
    return SumMinMaxState(state.values[selected], _renumber(state.invalid, selected))


@select_state.register
def _(state: AnyAllState, selected: Ints) -> AnyAllState:
    return AnyAllState(state.decided_at[selected], _renumber(state.invalid, selected))


@select_state.register
def _(state: FirstLastState, selected: Ints) -> FirstLastState:
    kept = np.isin(state.groups, selected)
    groups = np.searchsorted(selected, state.groups[kept])
    return FirstLastState(groups, state.values[kept], state.arrivals[kept], len(selected))


@select_state.register
def _(state: CountByState, selected: Ints) -> CountByState:
    at = _find_entries(state.counts, selected)
    table, ids = drop_unused_texts(state.table, state.ids[at])
    counts = state.counts[selected]
    bad = _renumber(state.invalid, selected)
    return CountByState(table, counts, np.cumsum(counts), ids, state.times[at], bad)


@select_state.register
def _(state: DistinctState, selected: Ints) -> DistinctState:
    at = _find_entries(state.counts, selected)
    table, ids = drop_unused_texts(state.table, state.ids[at])
    counts = state.counts[selected]
    arrivals = state.arrivals[at] if len(state.arrivals) else state.arrivals
    bad = _renumber(state.invalid, selected)
    return DistinctState(table, counts, np.cumsum(counts), ids, arrivals, bad)


@select_state.register
def _(state: TopKState, selected: Ints) -> TopKState:
    at = _find_entries(state.counts, selected)
    counts = state.counts[selected]
    return TopKState(
        counts,
        np.cumsum(counts),
        state.entries.take(at),
        state.arrivals[at],
        state.kinds[selected],
        _renumber(state.invalid, selected),
    )


@select_state.register
def _(state: FilteredState, selected: Ints) -> FilteredState:
    faults = _renumber(state.faults, selected)
    return FilteredState(select_state(state.inner, selected), state.reached[:, selected], faults)


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
