"""The element for which a query gives the least or the most, as `min_by` and `max_by` give it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.message_expression import ElementQuery
from streamer.bloblang.methods.aggregates import find_extreme
from streamer.window.aggregate.accumulator import InvalidValue
from streamer.window.aggregate.ranked_values import RankedValues
from streamer.window.aggregate.top_k import (
    HAS_NUMBERS,
    HAS_TEXTS,
    RankedEntry,
    TopKAccumulator,
    TopKEntries,
    TopKState,
)
from streamer.window.settings.int_codec import Ints


class ExtremeByAccumulator(TopKAccumulator):
    """Keeps one element: the first of those with the least rank, or the last with the greatest."""

    def __init__(self, greatest: bool, origin: str, question: ElementQuery | None) -> None:
        """Choose which one; the others are those of `TopKAccumulator`."""
        super().__init__(1, origin, question)
        self._greatest = greatest

    def _order_keys(self, entries: RankedValues, arrivals: Ints) -> tuple[NDArray[Any], Ints]:
        descending = entries.descending_keys()
        if self._greatest:
            return descending, -arrivals
        ascending: NDArray[Any] = -descending
        if entries.ranks.dtype == np.object_:
            none = np.fromiter((rank != rank for rank in entries.ranks), bool, len(ascending))
            ascending[none] = len(ascending)
        return ascending, arrivals

    def result_of_group(self, state: TopKState, group: int) -> Any:
        """Return a group's element."""
        return super().result_of_group(state, group)[0]

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Choose between the state's element and one more; the first invalid one stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        rank, item = value
        kinds = state.kinds | (HAS_TEXTS if type(rank) is str else HAS_NUMBERS)
        return self._keep_largest(kinds, (*state.entries, RankedEntry(rank, arrival, item)))

    def _keep_largest(self, kinds: int, entries: tuple[RankedEntry, ...]) -> TopKEntries:
        if kinds == HAS_NUMBERS | HAS_TEXTS:
            return TopKEntries(kinds, ())
        at = find_extreme([entry.rank for entry in entries], self._greatest)
        return TopKEntries(kinds, (entries[at],))

    def result_of(self, state: Any) -> Any:
        """Return a window's element."""
        return super().result_of(state)[0]
