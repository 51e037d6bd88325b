"""Values in the order of what they are ranked by: numbers, or texts."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.methods.aggregates import largest
from streamer.window.folds.texts import array_of, unmarked_text
from streamer.window.folds.values import Objects, objects
from streamer.window.ints import Ints

_EXACT: Final = 1 << 53
"""A float holds every integer up to here."""


class Entries(NamedTuple):
    """Some values.

    Attributes:
        ranks: what they are ordered by: int64, float64, or objects.
        items: the values; None when they are the ranks.
    """

    ranks: NDArray[Any]
    items: Objects | None

    def take(self, chosen: Ints) -> Entries:
        """Return some of them, given by their indices."""
        return Entries(self.ranks[chosen], None if self.items is None else self.items[chosen])

    def order(self) -> Ints:
        """Return what is the less, the larger a rank is."""
        if self.ranks.dtype == np.int64:
            return ~self.ranks
        if self.ranks.dtype == np.float64:
            # What is not a number comes last.
            return -self.ranks
        places = np.empty(len(self.ranks), np.int64)
        texts = self.texts()
        places[texts] = _of_texts(self.ranks[texts])
        places[~texts] = _of_numbers(self.ranks[~texts].tolist())
        return places

    def texts(self) -> NDArray[np.bool_]:
        """Return which of them are texts."""
        if self.ranks.dtype != np.object_:
            return np.zeros(len(self.ranks), bool)
        return np.fromiter((type(each) is str for each in self.ranks), bool, len(self.ranks))


def _of_texts(texts: Objects) -> Ints:
    encoded = array_of(texts.tolist()).dictionary_encode()
    table = list(map(unmarked_text, encoded.dictionary.to_pylist()))
    number = np.empty(len(table), np.int64)
    number[largest(table, len(table))] = np.arange(len(table))
    places: Ints = number[encoded.indices.to_numpy(zero_copy_only=False)]
    return places


def _of_numbers(numbers: list[Any]) -> list[int]:
    places = [0] * len(numbers)
    number = 0
    before: Any = None
    for at in largest(numbers, len(numbers)):
        number += numbers[at] != before
        before = numbers[at]
        places[at] = number
    return places


def joined_entries(entries: list[Entries]) -> Entries:
    """Return entries as one, in their order."""
    kinds = {each.ranks.dtype for each in entries}
    ranks = [each.ranks if len(kinds) == 1 else each.ranks.astype(object) for each in entries]
    if all(each.items is None for each in entries):
        return Entries(np.concatenate(ranks), None)
    items = [objects(e.ranks.tolist()) if e.items is None else e.items for e in entries]
    return Entries(np.concatenate(ranks), np.concatenate(items))


class EntriesColumn:
    """A column of entries, of which some can be taken."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries.ranks)

    def take(self, chosen: Ints) -> EntriesColumn:
        """Return some of them, given by their indices."""
        return EntriesColumn(self.entries.take(chosen))


def array_of_ranks(ranks: list[Any]) -> NDArray[Any]:
    """Return ranks as an array of numbers where that orders them the same, else of objects."""
    kinds = set(map(type, ranks))
    try:
        if kinds == {int}:
            return np.array(ranks, np.int64)
        if kinds <= {int, float}:
            floats = np.array(ranks, np.float64)
            if int not in kinds or np.nanmax(np.abs(floats)) < _EXACT:
                return floats
    except OverflowError:
        pass
    return objects(ranks)
