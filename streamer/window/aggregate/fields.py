"""What the parts of a fold look at in a message's document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.bloblang.message_expression import make_field_reader
from streamer.window.aggregate.accumulator import Accumulator, ValueColumn
from streamer.window.aggregate.registry import make_accumulator

Docs = Sequence[Any]


class FieldReader:
    """Reads the columns of a fold's parts.

    Attributes:
        accumulators: the parts', by number.
        exact: whether a part may tell numbers by how they are written.
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
        """Return what each part looks at in each document; some may be `InvalidDocument`."""
        return [read(docs) for read in self._readers]

    def make_columns(self, values: list[list[Any]]) -> list[ValueColumn]:
        """Return what messages bring to each part, from what it looks at."""
        return [
            accumulator.make_column(field)
            for accumulator, field in zip(self.accumulators, values, strict=True)
        ]
