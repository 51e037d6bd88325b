"""The values that a mapping's aggregates take of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamer.bloblang.analysis.aggregates import Aggregate
from streamer.bloblang.analysis.pre_aggregation import PreAggregation
from streamer.bloblang.analysis.snippets import describe_shape
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
        self._readers: list[Callable[[Docs], list[Any]]] = []
        self._reader_of: list[int] = []
        number: dict[str, int] = {}
        for part in aggregation.aggregates:
            # Expressions that several aggregates have are evaluated once.
            identity = _identity_of(part)
            if identity not in number:
                number[identity] = len(self._readers)
                self._readers.append(
                    make_field_reader(part.path)
                    if part.expression is None
                    else part.expression.evaluate
                )
            self._reader_of.append(number[identity])

    def read_values(self, docs: Docs) -> list[list[Any]]:
        """Return by aggregate its value in each document; some may be `InvalidDocument`.

        A list may be that of several aggregates.
        """
        values = [read(docs) for read in self._readers]
        return [values[reader] for reader in self._reader_of]

    def make_columns(self, values: list[list[Any]]) -> list[ValueColumn]:
        """Return by aggregate the column of its values."""
        return [
            accumulator.make_column(field)
            for accumulator, field in zip(self.accumulators, values, strict=True)
        ]


def _identity_of(part: Aggregate) -> str:
    """Return what tells the values of an aggregate from those of others."""
    if part.expression is None:
        return repr(part.path)
    if part.kind == "latest":
        return f"latest {part.identity}"
    return repr(describe_shape([part.expression.source, *part.expression.steps]))
