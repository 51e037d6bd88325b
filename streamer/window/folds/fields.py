"""What the parts of a fold look at in a message's document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.element import field_reader
from streamer.bloblang.folding import Fold
from streamer.window.folds.accumulators import accumulator_of
from streamer.window.folds.part import Accumulator, Column

Docs = Sequence[Any]


class Fields:
    """Reads the columns of a fold's parts.

    Attributes:
        accumulators: the parts', by number.
        exact: whether a part may tell numbers by how they are written.
    """

    def __init__(self, fold: Fold) -> None:
        self.accumulators: list[Accumulator] = [accumulator_of(part) for part in fold.parts]
        self.exact = any(part.element is not None for part in fold.parts)
        self._readers = [
            field_reader(part.path) if part.element is None else part.element.outcomes
            for part in fold.parts
        ]

    def values(self, docs: Docs) -> list[list[Any]]:
        """Return what each part looks at in each document; some may be `Broken`."""
        return [read(docs) for read in self._readers]

    def columns(self, values: list[list[Any]]) -> list[Column]:
        """Return what messages bring to each part, from what it looks at."""
        return [
            accumulator.column(field)
            for accumulator, field in zip(self.accumulators, values, strict=True)
        ]
