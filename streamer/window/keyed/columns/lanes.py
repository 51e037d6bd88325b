"""What a mapping asks of the messages of a session, as columns: which mappings can be kept so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import orjson

from streamer.bloblang.element import field_reader
from streamer.bloblang.parts import Part
from streamer.window.folds.groups import fold_for
from streamer.window.folds.running.part import dump_value
from streamer.window.ints import Ints
from streamer.window.keyed.columns.numbers import Bools, Floats, Numbers, numbers_of

_TOGETHER: Final = 1024
_REDUCED: Final = ("sum", "min", "max")

Reader = Callable[[Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class Segments:
    """Which messages, or sessions, are one session.

    Attributes:
        order: sorts them by session.
        bounds: where each session begins in that order.
        number: by place in that order, the number of the session.
        arrivals: of each, in no order.
    """

    order: Ints
    bounds: Ints
    number: Ints
    arrivals: Ints


class Lanes:
    """The parts of one mapping.

    Attributes:
        text: the mapping.
        columns: how many columns of numbers the parts need.
    """

    def __init__(self, text: str, parts: Sequence[Part]) -> None:
        """Take the mapping and its parts, of which all can be kept as columns."""
        self.text = text
        self._parts = parts
        self._kinds = [part.kind for part in parts if part.kind in _REDUCED]
        self.columns = len(self._kinds)
        self._readers: list[Reader] = [
            field_reader(part.path) for part in parts if part.kind in _REDUCED
        ]
        # Of a batch whose messages are no documents not even their number is told by a field.
        self._looks = any(part.origin or part.path for part in parts)

    def brought(self, raws: list[bytes]) -> tuple[list[Numbers], list[Ints]]:
        """Return what payloads bring, and the places of those to be looked at one by one."""
        if not self._looks:
            return [], []
        values: list[list[Any]] = [[] for _ in self._readers]
        broken: list[int] = []
        # So few at a time that their documents stay in the processor's cache.
        for start in range(0, len(raws), _TOGETHER):
            some = raws[start : start + _TOGETHER]
            try:
                docs = list(map(orjson.loads, some))
            except ValueError:
                docs = [_document(raw, start + at, broken) for at, raw in enumerate(some)]
            for held, read in zip(values, self._readers, strict=True):
                held += read(docs)
        found = [numbers_of(column) for column in values]
        odd = [rows for _, rows in found]
        return [numbers for numbers, _ in found], [*odd, np.array(broken, np.int64)]

    def reduced(self, columns: Sequence[Numbers], segments: Segments) -> list[Numbers]:
        """Return what each session comes to, by column."""
        made = zip(self._kinds, columns, strict=True)
        return [_reduced(kind, column, segments) for kind, column in made]

    def rounded(self, columns: Sequence[Numbers], most: float) -> Bools | None:
        """Return which sessions have sums of integers beyond a number; None when none has."""
        found: Bools | None = None
        for kind, column in zip(self._kinds, columns, strict=True):
            if kind == "sum":
                beyond = column.whole & (np.abs(column.values) > most)
                if beyond.any():
                    found = beyond if found is None else found | beyond
        return found

    def values(self, columns: Sequence[Numbers], counts: Ints) -> list[tuple[Any, ...]]:
        """Return by session what its parts come to."""
        if not self._parts:
            return [()] * len(counts)
        numbers = (column.values.tolist() for column in columns)
        return list(zip(*(self._listed(numbers, counts.tolist())), strict=True))

    def states(self, columns: Sequence[Numbers], counts: Ints) -> list[list[Any]]:
        """Return by session the states of its parts, as plain values: see `RunningFold.dump`."""
        numbers = (
            [dump_value(int(n) if whole else n) for n, whole in zip(*listed, strict=True)]
            for listed in ((c.values.tolist(), c.whole.tolist()) for c in columns)
        )
        by_part = self._listed(numbers, counts.tolist())
        return [list(states) for states in zip(*by_part, strict=True)] or [[] for _ in counts]

    def _listed(self, numbers: Any, counts: list[int]) -> list[list[Any]]:
        return [next(numbers) if part.kind in _REDUCED else counts for part in self._parts]


@lru_cache(maxsize=64)
def lanes_of(text: str) -> Lanes | None:
    """Return how a mapping's parts are kept as columns; None when some cannot be.

    Raises:
        StreamerError: this program does not know how to fold the mapping.
    """
    parts = fold_for(text).parts
    plain = all(part.element is None and part.kind in (*_REDUCED, "count") for part in parts)
    return Lanes(text, parts) if plain else None


def _document(raw: bytes, row: int, broken: list[int]) -> Any:
    try:
        return orjson.loads(raw)
    except ValueError:
        broken.append(row)
        return {}


def _reduced(kind: str, column: Numbers, segments: Segments) -> Numbers:
    order, bounds, count = segments.order, segments.bounds, len(segments.bounds)
    whole = column.whole
    alike = bool(whole.all())
    if kind != "sum":
        reduce = np.minimum if kind == "min" else np.maximum
        values: Floats = reduce.reduceat(column.values[order], bounds)
    elif alike:
        values = _sums(segments.number, column.values[order], count)
    else:
        # A sum of floats depends on their order, which is that of their arrival.
        arrived = np.lexsort((segments.arrivals[order], segments.number))
        values = _sums(segments.number, column.values[order][arrived], count)
    if alike:
        return Numbers(values, np.ones(count, np.bool_))
    return Numbers(values, np.logical_and.reduceat(whole[order], bounds))


def _sums(number: Ints, values: Floats, count: int) -> Floats:
    """Return the sums of values, added one after another."""
    found: Floats = np.bincount(number, values, count).astype(np.float64, copy=False)
    return found
