"""A batch as a table, and rows of tables as documents."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from streamer.connectors.tables.batch_table import make_batch_table, make_row_documents
from streamer.core.json.dump import dump_json
from streamer.core.message import Message
from streamer.core.value import UInt


def batch_of(*payloads: Any) -> list[Message]:
    return [
        Message(one if isinstance(one, bytes) else json.dumps(one).encode()) for one in payloads
    ]


def test_a_batch_is_a_table_with_the_columns_that_its_fields_tell() -> None:
    made = make_batch_table(batch_of({"a": 1, "b": "x"}, {"a": 2.5, "c": [1, 2]}, {"d": {"e": 1}}))
    assert made.errors == {} and list(made.indexes) == [0, 1, 2]
    kinds = {field.name: str(field.type) for field in made.rows.schema}
    assert kinds == {
        "a": "double",
        "b": "string",
        "c": "list<item: int64>",
        "d": "struct<e: int64>",
    }
    assert made.rows.column("a").to_pylist() == [1.0, 2.5, None]


def test_messages_that_are_no_rows_are_left_out_by_their_index() -> None:
    made = make_batch_table(batch_of(b"{", {"a": 1}, [1], b"nonsense", {"a": 2}))
    assert list(made.indexes) == [1, 4]
    assert made.rows.to_pydict() == {"a": [1, 2]}
    assert sorted(made.errors) == [0, 2, 3]
    assert "failed to parse message as JSON" in made.errors[0]
    assert made.errors[2].startswith("the message is an array; expected an object")


def test_declared_columns_have_their_types_whatever_comes() -> None:
    declared = pa.schema([("a", pa.float64()), ("t", pa.timestamp("us", tz="UTC"))])
    made = make_batch_table(batch_of({"a": 1, "t": "2026-01-02T03:04:05Z", "b": True}), declared)
    assert made.rows.schema.names == ["a", "t", "b"]
    assert made.rows.column("a").to_pylist() == [1.0]
    late = make_batch_table(batch_of({"a": 1, "t": "soon"}), declared)
    assert "does not fit its column, timestamp" in late.errors[0]


def test_an_empty_batch_has_no_rows() -> None:
    assert make_batch_table([]).rows.num_rows == 0


WIDE = {
    "b": (pa.array([True, None]), [True, None]),
    "i": (pa.array([-(1 << 63), None]), [-(1 << 63), None]),
    "u": (pa.array([(1 << 64) - 1, 7], pa.uint64()), [UInt((1 << 64) - 1), 7]),
    "f": (pa.array([1.5, float("inf")]), [1.5, None]),
    "h": (pa.array([1.5, None], pa.float32()), [1.5, None]),
    "s": (pa.array(["é", None], pa.large_string()), ["é", None]),
    "x": (pa.array([b"\0", None]), [b"\0", None]),
    "t": (
        pa.array([datetime(2026, 1, 2, 3, 4, 5, 600, UTC), None], pa.timestamp("us", "UTC")),
        ["2026-01-02T03:04:05.0006Z", None],
    ),
    "p": (
        pa.array([datetime(2026, 1, 2), None], pa.timestamp("s")),
        ["2026-01-02T00:00:00Z", None],
    ),
    "d": (pa.array([date(1969, 1, 2), None]), ["1969-01-02", None]),
    "c": (pa.array([time(1, 2, 3), None], pa.time64("us")), ["01:02:03", None]),
    "e": (pa.array([timedelta(seconds=1), None], pa.duration("ms")), [1_000_000_000, None]),
    "n": (pa.array([Decimal(5), None], pa.decimal128(38, 0)), [5, None]),
    "l": (pa.array([[1, None], None]), [[1, None], None]),
    "w": (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
    "r": (pa.array([{"a": {"b": 1}}, None]), [{"a": {"b": 1}}, None]),
    "m": (
        pa.array([[("k", [1])], None], pa.map_(pa.string(), pa.list_(pa.int8()))),
        [{"k": [1]}, None],
    ),
    "k": (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
    "z": (pa.nulls(2), [None, None]),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("start", [0, 1])
def test_every_type_of_a_column_becomes_values_of_messages(name: str, start: int) -> None:
    array, wanted = WIDE[name]
    got = [row["v"] for row in make_row_documents(pa.table({"v": array}).slice(start))]
    assert got == wanted[start:] and list(map(type, got)) == list(map(type, wanted[start:]))


def test_decimals_keep_all_digits() -> None:
    values = [Decimal("12345678901234567890123.45"), Decimal("-1.50")]
    table = pa.table({"v": pa.array(values, pa.decimal128(38, 2))})
    assert [dump_json(row) for row in make_row_documents(table)] == [
        b'{"v":12345678901234567890123.45}',
        b'{"v":-1.50}',
    ]


def test_uuids_are_texts() -> None:
    one = UUID(int=5)
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([one.bytes], pa.binary(16)))
    assert make_row_documents(pa.table({"v": array})) == [{"v": str(one)}]


def test_what_messages_do_not_have_is_said() -> None:
    spans = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(ValueError, match="the column v has the type month_day_nano_interval"):
        make_row_documents(pa.table({"v": spans}))
    with pytest.raises(ValueError, match="two columns have the name 'v'"):
        make_row_documents(pa.table([[1], [2]], names=["v", "v"]))


def test_rows_without_columns_are_empty_objects() -> None:
    table = pa.table({"v": [1, 2]}).select([])
    assert make_row_documents(table) == [{}] * table.num_rows


def test_a_batch_comes_back_as_it_was() -> None:
    documents = [
        {"a": 1, "b": "x", "c": [1.5], "d": {"e": [True, None]}},
        {"a": 2, "b": "y", "c": [], "d": {"e": []}},
    ]
    assert make_row_documents(make_batch_table(batch_of(*documents)).rows) == documents
