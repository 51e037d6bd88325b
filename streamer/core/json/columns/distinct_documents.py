"""The distinct values of columns, as documents that have nothing but these values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from streamer.core.json.columns.field_columns import Columns
from streamer.core.json.columns.line_block import Positions
from streamer.core.json.columns.line_shape import Path

_MAX_EXACT_INT: Final = 1 << 53
_MAX_COMBINATIONS: Final = 1 << 40


class DistinctDocuments(NamedTuple):
    """Documents that stand for lines.

    Attributes:
        documents: the documents.
        number: by line, which of them has the line's values.
    """

    documents: list[dict[str, Any]]
    number: Positions


def make_distinct_documents(columns: Columns, paths: Sequence[Path]) -> DistinctDocuments | None:
    """Return the documents of lines.

    Args:
        columns: the lines' values, one line at least.
        paths: the fields.

    Returns:
        None when a field has numbers that are no integers: how they are written may matter.
    """
    number = np.zeros(len(columns.lines), np.int64)
    values: list[list[Any]] = []
    count = 1
    for path in paths:
        coded = _code_values(columns, path)
        if coded is None or count * len(coded[0]) > _MAX_COMBINATIONS:
            return None
        values.append(coded[0])
        number = number * len(coded[0]) + coded[1]
        count *= len(coded[0])
    used, number = np.unique(number, return_inverse=True)
    documents: list[dict[str, Any]] = [{} for _ in used]
    for path, own in zip(reversed(paths), reversed(values), strict=True):
        used, places = np.divmod(used, len(own))
        for document, place in zip(documents, places.tolist(), strict=True):
            _set_value(document, path, own[place])
    return DistinctDocuments(documents, number)


def _code_values(columns: Columns, path: Path) -> tuple[list[Any], Positions] | None:
    """Return the distinct values of a field, and by line which it has."""
    if path in columns.texts:
        encoded = columns.texts[path].dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
    numbers = columns.numbers.get(path)
    if numbers is None or numbers.dtype != np.int64:
        return None
    least, most = int(numbers.min()), int(numbers.max())
    if max(-least, most) >= _MAX_EXACT_INT:
        return None
    if most - least < len(numbers):
        return list(range(least, most + 1)), numbers - least
    distinct, places = np.unique(numbers, return_inverse=True)
    return distinct.tolist(), places


def _set_value(document: dict[str, Any], path: Path, value: Any) -> None:
    for key in path[:-1]:
        document = document.setdefault(key, {})
    document[path[-1]] = value
