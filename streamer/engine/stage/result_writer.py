"""Writes the results of many pre-aggregated groups as JSON, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import orjson

from streamer.bloblang.analysis.result_columns import (
    AggregateField,
    ComputedField,
    DocumentField,
    MetadataField,
    ResultColumns,
    find_result_columns,
)
from streamer.bloblang.runtime.metadata import plain_text
from streamer.core.json.bulk import parse_payloads
from streamer.core.json.dump import dump_json_each, dump_json_texts
from streamer.core.limits import current_limits
from streamer.core.value import DELETED, NOTHING
from streamer.window.fire.group_columns import GroupColumns

_MAX_WHOLE_FLOAT: Final = 1e15
"""Below it a whole float is written as an integer is."""


def write_results(groups: GroupColumns) -> list[bytes] | None:
    """Return the JSON that the mapping of groups makes of each.

    Returns:
        None where the mapping is to be run on each group: it makes something else, one of the
        groups fails, or its time is limited.
    """
    if current_limits().time or groups.has_failed_messages:
        return None
    columns = find_result_columns(groups.text)
    if columns is None or groups.results is None:
        return None
    # Whatever fails, fails again where it is told which group it is about.
    with suppress(Exception):
        return _write_columns(columns, groups, groups.results)
    return None


def _write_columns(
    columns: ResultColumns, groups: GroupColumns, results: Sequence[Sequence[Any]]
) -> list[bytes] | None:
    documents = parse_payloads(groups.payloads) if columns.reads_documents else []
    written: list[list[bytes]] = []
    for field in columns.fields:
        match field:
            case AggregateField(number=number):
                values = results[number]
            case MetadataField(name=name, as_text=as_text):
                values = groups.metadata_column(name, plain_text if as_text else _as_it_is)
            case DocumentField(read=read):
                values = list(map(read, documents))
            case ComputedField(compute=compute):
                rows = map(_Row, zip(*results, strict=True))
                values = [compute(row, 0, None, None, None) for row in rows]
        texts = dump_column(values)
        if texts is None:
            return None
        written.append(texts)
    return columns.join(written, len(groups))


class _Row:
    """The aggregates of a group, as a computed field takes them."""

    __slots__ = ("aggregate_value",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.aggregate_value = values.__getitem__


def _as_it_is(value: Any) -> Any:
    return value


def dump_column(values: Sequence[Any]) -> list[bytes] | None:
    """Return the JSON of each of some values; None where one of them is no value.

    Raises:
        ValueError: one of them has no form as JSON.
    """
    kinds = set(map(type, values))
    if kinds == {str}:
        if len(values) > 1 and values[0] is values[-1] and len(set(values)) == 1:
            return dump_json_texts(values[:1]) * len(values)
        return dump_json_texts(values)
    if kinds == {float}:
        numbers = np.array(values)
        # Zero may have a sign, which integers have not.
        whole = (np.abs(numbers) < _MAX_WHOLE_FLOAT) & (np.trunc(numbers) == numbers)
        if not whole.all() or (np.signbit(numbers) & (numbers == 0)).any():
            return dump_json_each(values)
        values, kinds = numbers.astype(np.int64).tolist(), {int}
    if kinds == {int}:
        with suppress(orjson.JSONEncodeError):  # of integers beyond 64 bits
            return orjson.dumps(values)[1:-1].split(b",")
    if any(value is DELETED or value is NOTHING for value in values):
        return None
    return dump_json_each(values)
