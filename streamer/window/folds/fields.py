"""What the parts of a fold look at in a message's document."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

from streamer.bloblang.folding import Fold
from streamer.bloblang.runtime.paths import search
from streamer.window.folds.groups import accumulator_of
from streamer.window.folds.part import Accumulator, Column

Docs = list[Any]


class Fields:
    """Reads the columns of a fold's parts; `accumulators` are theirs, by number."""

    def __init__(self, fold: Fold) -> None:
        self.accumulators: list[Accumulator] = [accumulator_of(part) for part in fold.parts]
        self._readers = [_reader(part.path) for part in fold.parts]

    def values(self, docs: Docs) -> list[list[Any]]:
        """Return what each part's field holds in each document."""
        return [read(docs) for read in self._readers]

    def columns(self, values: list[list[Any]]) -> list[Column]:
        """Return what messages bring to each part, from what its field holds."""
        return [
            accumulator.column(field)
            for accumulator, field in zip(self.accumulators, values, strict=True)
        ]


def _reader(path: tuple[str, ...]) -> Callable[[Docs], list[Any]]:
    if not path:
        return _documents
    return partial(_field, itemgetter(path[0]), path) if len(path) == 1 else partial(_search, path)


def _documents(docs: Docs) -> list[Any]:
    return docs


def _field(get: Callable[[Any], Any], path: tuple[str, ...], docs: Docs) -> list[Any]:
    try:
        return list(map(get, docs))
    except (KeyError, TypeError, IndexError):
        return _search(path, docs)


def _search(path: tuple[str, ...], docs: Docs) -> list[Any]:
    return [search(doc, path) for doc in docs]
