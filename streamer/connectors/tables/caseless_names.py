"""Fields of messages that belong to columns whose names differ by case alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamer.connectors.tables.column_types import is_list_type


def match_names(
    objects: Sequence[dict[str, Any]], schema: pa.Schema, errors: dict[int, str]
) -> list[dict[str, Any]]:
    """Return messages whose fields have the names of their columns.

    Of names that are no column yet, the first form in order counts for all messages.

    Args:
        objects: the messages.
        schema: the columns.
        errors: gets why messages are none, by index: they have two fields for one column.
    """
    names = {field.name.casefold(): field.name for field in schema}
    kinds = {field.name: field.type for field in schema}
    matched = []
    for index, document in enumerate(objects):
        try:
            matched.append(_match_object(document, names, kinds))
        except ValueError as error:
            errors.setdefault(index, str(error))
            matched.append({})
    return matched


def _match_object(
    document: Mapping[str, Any], names: dict[str, str], kinds: Mapping[str, pa.DataType]
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in document.items():
        column = names.setdefault(name.casefold(), name)
        if column in made:
            raise ValueError(f"has two fields for the column {column}, which differ by case alone")
        made[column] = _match_value(value, kinds.get(column))
    return made


def _match_value(value: Any, kind: pa.DataType | None) -> Any:
    if kind is None:
        return value
    if isinstance(value, dict) and pa.types.is_struct(kind):
        names = {field.name.casefold(): field.name for field in kind}
        return _match_object(value, names, {field.name: field.type for field in kind})
    if isinstance(value, list) and is_list_type(kind):
        return [_match_value(one, kind.value_type) for one in value]
    return value


def rename_columns(table: pa.Table, names: dict[str, str]) -> pa.Table:
    """Return rows whose columns have names that others have given.

    Args:
        table: the rows of one task.
        names: by their form without case; gets those that are new.
    """
    given = [names.setdefault(name.casefold(), name) for name in table.schema.names]
    return table.rename_columns(given) if given != table.schema.names else table
