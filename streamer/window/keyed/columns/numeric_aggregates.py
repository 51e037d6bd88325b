"""Numeric aggregates (sum, min, max, count) of sessions, computed over columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import orjson

from streamer.bloblang.analysis.aggregates import Aggregate
from streamer.bloblang.message_expression import make_field_reader
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.aggregate.pre_aggregator import DOCUMENTS_PER_PARSE
from streamer.window.aggregate.value_codec import dump_value
from streamer.window.keyed.columns.numbers import Floats, NumberColumn, read_numbers
from streamer.window.settings.int_codec import Bools, Ints

_REDUCED_KINDS: Final = ("sum", "min", "max")

Reader = Callable[[Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class SessionGroups:
    """Messages and open sessions, grouped into sessions.

    Attributes:
        order: indices of messages and open sessions, sorted by session.
        bounds: by session, its first position in `order`.
        number: by position in `order`, the number of the session.
        arrivals: arrival numbers, not sorted.
    """

    order: Ints
    bounds: Ints
    number: Ints
    arrivals: Ints


class NumericAggregates:
    """The aggregates of one mapping.

    Attributes:
        text: the mapping.
        columns: number of columns that the aggregates need.
    """

    def __init__(self, text: str, parts: Sequence[Aggregate]) -> None:
        """Create the aggregates of a mapping, all of which can be computed over columns."""
        self.text = text
        self._parts = parts
        self._kinds = [part.kind for part in parts if part.kind in _REDUCED_KINDS]
        self.columns = len(self._kinds)
        self._readers: list[Reader] = [
            make_field_reader(part.path) for part in parts if part.kind in _REDUCED_KINDS
        ]
        # If no aggregate reads a field, messages need not be JSON.
        self._reads_documents = any(part.origin or part.path for part in parts)

    def read_messages(self, raws: list[bytes]) -> tuple[list[NumberColumn], list[Ints]]:
        """Return by column the values of messages, and the rows that need the row path."""
        if not self._reads_documents:
            return [], []
        values: list[list[Any]] = [[] for _ in self._readers]
        broken: list[int] = []
        # So few at a time that their documents stay in the processor's cache.
        for start in range(0, len(raws), DOCUMENTS_PER_PARSE):
            some = raws[start : start + DOCUMENTS_PER_PARSE]
            try:
                docs = list(map(orjson.loads, some))
            except ValueError:
                docs = [_parse_document(raw, start + at, broken) for at, raw in enumerate(some)]
            for column_values, read in zip(values, self._readers, strict=True):
                column_values += read(docs)
        columns = [read_numbers(column) for column in values]
        odd = [rows for _, rows in columns]
        return [numbers for numbers, _ in columns], [*odd, np.array(broken, np.int64)]

    def reduce_sessions(
        self, columns: Sequence[NumberColumn], segments: SessionGroups
    ) -> list[NumberColumn]:
        """Aggregate values by session, column by column."""
        made = zip(self._kinds, columns, strict=True)
        return [_reduce_column(kind, column, segments) for kind, column in made]

    def find_inexact(self, columns: Sequence[NumberColumn], limit: float) -> Bools | None:
        """Return which sessions have a sum of integers beyond `limit`; None if none has."""
        inexact: Bools | None = None
        for kind, column in zip(self._kinds, columns, strict=True):
            if kind == "sum":
                beyond = column.whole & (np.abs(column.values) > limit)
                if beyond.any():
                    inexact = beyond if inexact is None else inexact | beyond
        return inexact

    def list_results(self, columns: Sequence[NumberColumn], counts: Ints) -> list[list[Any]]:
        """Return by aggregate its results, by session."""
        numbers = (column.values.tolist() for column in columns)
        return self._list_by_part(numbers, counts.tolist())

    def dump_states(self, columns: Sequence[NumberColumn], counts: Ints) -> list[list[Any]]:
        """Return by session the states of its aggregates, see `MappingAggregation.dump`."""
        numbers = (
            [dump_value(int(n) if whole else n) for n, whole in zip(*listed, strict=True)]
            for listed in ((c.values.tolist(), c.whole.tolist()) for c in columns)
        )
        by_part = self._list_by_part(numbers, counts.tolist())
        return [list(states) for states in zip(*by_part, strict=True)] or [[] for _ in counts]

    def _list_by_part(self, numbers: Any, counts: list[int]) -> list[list[Any]]:
        return [next(numbers) if part.kind in _REDUCED_KINDS else counts for part in self._parts]


@lru_cache(maxsize=64)
def numeric_aggregates_of(text: str) -> NumericAggregates | None:
    """Return the aggregates of a mapping; None if some cannot be computed over columns.

    Raises:
        StreamerError: this program cannot aggregate by the mapping.
    """
    parts = aggregation_for(text).aggregates
    plain = all(
        part.expression is None and part.kind in (*_REDUCED_KINDS, "count") for part in parts
    )
    return NumericAggregates(text, parts) if plain else None


def _parse_document(raw: bytes, row: int, broken: list[int]) -> Any:
    try:
        return orjson.loads(raw)
    except ValueError:
        broken.append(row)
        return {}


def _reduce_column(kind: str, column: NumberColumn, groups: SessionGroups) -> NumberColumn:
    order, bounds, count = groups.order, groups.bounds, len(groups.bounds)
    whole = column.whole
    alike = bool(whole.all())
    if kind != "sum":
        reduce = np.minimum if kind == "min" else np.maximum
        values: Floats = reduce.reduceat(column.values[order], bounds)
    elif alike:
        values = _sum_sessions(groups.number, column.values[order], count)
    else:
        # A sum of floats depends on their order, which is that of their arrival.
        arrived = np.lexsort((groups.arrivals[order], groups.number))
        values = _sum_sessions(groups.number, column.values[order][arrived], count)
    if alike:
        return NumberColumn(values, np.ones(count, np.bool_))
    return NumberColumn(values, np.logical_and.reduceat(whole[order], bounds))


def _sum_sessions(number: Ints, values: Floats, count: int) -> Floats:
    """Return by session the sum of its values, added one after another."""
    sums: Floats = np.bincount(number, values, count).astype(np.float64, copy=False)
    return sums
