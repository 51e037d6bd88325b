"""The values that a mapping's aggregates take of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.bloblang.message_expression import make_field_reader
from streamer.window.aggregate.accumulator import Accumulator, ValueColumn
from streamer.window.aggregate.registry import make_accumulator

Docs = Sequence[Any]


class FieldReader:
    """Reads the values of each aggregate of a mapping.

    Attributes:
        accumulators: by aggregate.
        exact: whether documents must keep how numbers are written, for some expression.
    """

    def __init__(self, aggregation: PreAggregation) -> None:
        self.accumulators: list[Accumulator] = [
            make_accumulator(part) for part in aggregation.aggregates
        ]
        self.exact = any(part.expression is not None for part in aggregation.aggregates)
        self._readers = [
            make_field_reader(part.path) if part.expression is None else part.expression.evaluate
            for part in aggregation.aggregates
        ]

    def read_values(self, docs: Docs) -> list[list[Any]]:
        """Return by aggregate its value in each document; some may be `InvalidDocument`."""
        return [read(docs) for read in self._readers]

    def make_columns(self, values: list[list[Any]]) -> list[ValueColumn]:
        """Return by aggregate the column of its values."""
        return [
            accumulator.make_column(field)
            for accumulator, field in zip(self.accumulators, values, strict=True)
        ]
