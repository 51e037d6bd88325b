"""Values with the ranks that order them: numbers, or texts."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.methods.aggregates import find_largest
from streamer.window.aggregate.string_columns import make_text_array, unmark_text
from streamer.window.aggregate.value_codec import Objects, make_object_array
from streamer.window.settings.int_codec import Ints

_MAX_EXACT_INT: Final = 1 << 53
"""A float holds every integer up to here."""


class RankedValues(NamedTuple):
    """Some values.

    Attributes:
        ranks: what they are ordered by: int64, float64, or objects.
        items: the values; None when they are the ranks.
    """

    ranks: NDArray[Any]
    items: Objects | None

    def take(self, indices: Ints) -> RankedValues:
        """Return some of them, given by their indices."""
        return RankedValues(
            self.ranks[indices], None if self.items is None else self.items[indices]
        )

    def descending_keys(self) -> Ints:
        """Return by value a number that is the smaller, the larger its rank is."""
        if self.ranks.dtype == np.int64:
            return ~self.ranks
        if self.ranks.dtype == np.float64:
            # What is not a number comes last.
            return -self.ranks
        places = np.empty(len(self.ranks), np.int64)
        texts = self.find_texts()
        if texts.any():
            places[texts] = _rank_texts(self.ranks[texts])
        places[~texts] = _rank_numbers(self.ranks[~texts].tolist())
        return places

    def find_texts(self) -> NDArray[np.bool_]:
        """Return which of them are texts."""
        if self.ranks.dtype != np.object_:
            return np.zeros(len(self.ranks), bool)
        return np.fromiter((type(each) is str for each in self.ranks), bool, len(self.ranks))


def _rank_texts(texts: Objects) -> Ints:
    encoded = make_text_array(texts.tolist()).dictionary_encode()
    table = list(map(unmark_text, encoded.dictionary.to_pylist()))
    number = np.empty(len(table), np.int64)
    number[find_largest(table, len(table))] = np.arange(len(table))
    places: Ints = number[encoded.indices.to_numpy(zero_copy_only=False)]
    return places


def _rank_numbers(numbers: list[Any]) -> list[int]:
    places = [0] * len(numbers)
    number = 0
    before: Any = None
    for at in find_largest(numbers, len(numbers)):
        number += numbers[at] != before
        before = numbers[at]
        places[at] = number
    return places


def concat_ranked(entries: list[RankedValues]) -> RankedValues:
    """Return entries as one, in their order."""
    kinds = {each.ranks.dtype for each in entries}
    ranks = [each.ranks if len(kinds) == 1 else each.ranks.astype(object) for each in entries]
    if all(each.items is None for each in entries):
        return RankedValues(np.concatenate(ranks), None)
    items = [make_object_array(e.ranks.tolist()) if e.items is None else e.items for e in entries]
    return RankedValues(np.concatenate(ranks), np.concatenate(items))


class RankedValuesColumn:
    """A column of entries, of which some can be taken."""

    def __init__(self, entries: RankedValues) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries.ranks)

    def take(self, indices: Ints) -> RankedValuesColumn:
        """Return some of them, given by their indices."""
        return RankedValuesColumn(self.entries.take(indices))


def make_rank_array(ranks: list[Any]) -> NDArray[Any]:
    """Return ranks as an array of numbers where that orders them the same, else of objects."""
    kinds = set(map(type, ranks))
    try:
        if kinds == {int}:
            return np.array(ranks, np.int64)
        if kinds <= {int, float}:
            floats = np.array(ranks, np.float64)
            if int not in kinds or np.nanmax(np.abs(floats)) < _MAX_EXACT_INT:
                return floats
    except OverflowError:
        pass
    return make_object_array(ranks)
