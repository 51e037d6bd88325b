"""Pre-aggregated groups: their first messages, counts of messages, and states of aggregates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.core.errors import StreamerError
from streamer.window.aggregate.accumulator import Accumulator
from streamer.window.aggregate.registry import make_accumulator
from streamer.window.settings.int_codec import Ints


@dataclass(slots=True)
class PartialAggregates:
    """Some groups of one pane, or of one window.

    Attributes:
        text: the mapping that they are aggregated for.
        key_id: identifies the expression that gave the keys; None when there is none, and all
            messages are one group.
        keys: by group.
        counts: by group, its messages.
        arrivals: by group, that of its first message.
        payloads: by group, that of its first message.
        metas: by group, that of its first message, as `encode_meta` writes it.
        last_arrival: the largest arrival number of all.
        states: by aggregate, of all groups.
        max_times: by group, its largest event time, ns; None where windows are not of event time.
    """

    text: str
    key_id: int | None
    keys: list[bytes]
    counts: Ints
    arrivals: Ints
    payloads: list[bytes]
    metas: list[bytes]
    last_arrival: int
    states: list[Any]
    max_times: Ints | None = None

    @property
    def first_arrival(self) -> int:
        """The smallest arrival number of all."""
        return int(self.arrivals.min())


@lru_cache(maxsize=64)
def aggregation_for(text: str) -> PreAggregation:
    """Return what a mapping aggregates; it is analyzed once.

    Raises:
        StreamerError: this program cannot aggregate it.
    """
    aggregation = analyze_pre_aggregation(text)
    if not isinstance(aggregation, PreAggregation):
        raise StreamerError(
            "the state holds groups aggregated for a mapping that cannot be aggregated here: "
            f"{aggregation}; run the version that wrote the checkpoint, or start from another one"
        )
    return aggregation


def make_accumulators(text: str) -> list[Accumulator]:
    """Return the accumulators of a mapping's aggregates; raises as `aggregation_for`."""
    return [make_accumulator(part) for part in aggregation_for(text).aggregates]


def make_numbering() -> dict[bytes, int]:
    """Return a dict that gives each key that is looked up the next number."""
    number: defaultdict[bytes, int] = defaultdict()
    number.default_factory = number.__len__
    return number


def number_keys(keys: list[bytes], number: dict[bytes, int]) -> Ints:
    """Return the numbers of keys; `number` is of `make_numbering`."""
    return np.fromiter(map(number.__getitem__, keys), np.int64, len(keys))


def merge_partial_aggregates(groups: Sequence[PartialAggregates]) -> PartialAggregates:
    """Merge groups of several packs; all are aggregated for the same mapping.

    Args:
        groups: one at least, in order of arrival.
    """
    if len(groups) == 1:
        return groups[0]
    number = make_numbering()
    where = [number_keys(each.keys, number) for each in groups]
    counts = np.zeros(len(number), np.int64)
    before = []
    for each, numbers in zip(groups, where, strict=True):
        before.append(counts.copy())
        counts[numbers] += each.counts
    arrivals, firsts = _find_first_messages(groups, where, len(number))
    payloads = [groups[which].payloads[group] for which, group in firsts]
    metas = [groups[which].metas[group] for which, group in firsts]
    states = [
        accumulator.merge_states([each.states[at] for each in groups], where, before, len(number))
        for at, accumulator in enumerate(make_accumulators(groups[0].text))
    ]
    return PartialAggregates(
        groups[0].text,
        groups[0].key_id,
        list(number),
        counts,
        arrivals,
        payloads,
        metas,
        max(each.last_arrival for each in groups),
        states,
        _merge_max_times(groups, where, len(number)),
    )


def select_groups(groups: PartialAggregates, indices: Ints) -> PartialAggregates:
    """Return some groups, such as those whose keys go to another shard.

    Args:
        groups: all groups.
        indices: the places of some, ascending, one at least.
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
        [
            accumulator.take_groups(state, indices)
            for accumulator, state in zip(
                make_accumulators(groups.text), groups.states, strict=True
            )
        ],
        None if groups.max_times is None else groups.max_times[indices],
    )


def _merge_max_times(
    groups: Sequence[PartialAggregates], where: list[Ints], count: int
) -> Ints | None:
    max_times = np.full(count, np.iinfo(np.int64).min)
    for each, numbers in zip(groups, where, strict=True):
        if each.max_times is None:
            return None
        # A group is there once in each of them.
        max_times[numbers] = np.maximum(max_times[numbers], each.max_times)
    return max_times


def _find_first_messages(
    groups: Sequence[PartialAggregates], where: list[Ints], count: int
) -> tuple[Ints, list[tuple[int, int]]]:
    """Return the smallest arrival of each group, and where its first message is."""
    arrivals = np.concatenate([each.arrivals for each in groups])
    numbers = np.concatenate(where)
    # Sorted by group, then by arrival: the first entry of each group is the one.
    order = np.lexsort((arrivals, numbers))
    firsts = order[np.searchsorted(numbers[order], np.arange(count))]
    starts = np.cumsum([0, *(len(each.keys) for each in groups)])
    which = np.searchsorted(starts, firsts, "right") - 1
    places = list(zip(which.tolist(), (firsts - starts[which]).tolist(), strict=True))
    return arrivals[firsts], places
