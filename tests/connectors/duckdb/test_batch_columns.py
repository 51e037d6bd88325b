"""Messages as columns: types at their ends, and values that fit no column."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from streamer.connectors.duckdb.batch_columns import BatchColumns, ColumnBuilder, build_table
from streamer.connectors.duckdb.column_kinds import parse_batch_column, parse_batch_columns
from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.query_text import parse_query
from streamer.core.lazy_batch import LazyBatch
from streamer.core.message import Batch, Message
from streamer.core.timestamps import Timestamp

ALL = "FROM batch"


def build(*payloads: str | bytes, sql: str = ALL, **columns: str) -> BatchColumns:
    batch = [Message(one if isinstance(one, bytes) else one.encode()) for one in payloads]
    builder = ColumnBuilder(parse_query(sql), parse_batch_columns(columns), ())
    return builder.build(batch)


def column(*values: str, **columns: str) -> tuple[str, list[Any], dict[int, str]]:
    made = build(*(f'{{"v":{value}}}' for value in values), **columns)
    array = made.rows.column("v")
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    return str(array.type), storage.to_pylist(), dict(made.errors)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "-9223372036854775808", "9223372036854775807"], "int64", None),
        (["0", "18446744073709551615"], "uint64", None),
        (["-1", "18446744073709551615"], "decimal128(38, 0)", [Decimal(-1), Decimal(2**64 - 1)]),
        (["18446744073709551616"], "decimal128(38, 0)", [Decimal(2**64)]),
        (["9" * 38], "decimal128(38, 0)", [Decimal("9" * 38)]),
        (["1.5", "1e300", "1.50"], "double", [1.5, 1e300, 1.5]),
        (["1", "2.5", "3"], "double", [1.0, 2.5, 3.0]),
        (["null", "null"], "null", None),
        (["null", "1"], "int64", [None, 1]),
        (["true", "null"], "bool", [True, None]),
        (['"2026-01-01T00:00:00Z"', '"é\\u0000"'], "string", ["2026-01-01T00:00:00Z", "é\0"]),
        (["[1,2]", "[]", "null"], "list<item: int64>", [[1, 2], [], None]),
        (["[]", "{}"], "extension<arrow.json>", ["[]", None]),
    ],
)
def test_inferred_types_at_their_ends(values: list[str], kind: str, expected: Any) -> None:
    found, made, errors = column(*values)
    assert found == kind
    if kind != "extension<arrow.json>":
        assert errors == {}
        assert made == ([json.loads(value) for value in values] if expected is None else expected)


def test_nested_objects_have_all_their_fields() -> None:
    kind, made, errors = column('{"a":1}', '{"b":[{"c":"x"}]}', "null")
    assert kind == "struct<a: int64, b: list<item: struct<c: string>>>"
    assert made == [{"a": 1, "b": None}, {"a": None, "b": [{"c": "x"}]}, None]
    assert errors == {}


@pytest.mark.parametrize(
    ("kind", "good", "made", "bad"),
    [
        ("bigint", "9223372036854775807", 2**63 - 1, "9223372036854775808"),
        ("bigint", "3.0", 3, "3.5"),
        ("int", "-2147483648", -(2**31), "2147483648"),
        ("ubigint", "18446744073709551615", 2**64 - 1, "-1"),
        ("ubigint", "1e3", 1000, "18446744073709551616"),
        ("hugeint", "1" + "0" * 37, Decimal(10**37), "1" + "0" * 38),
        ("decimal(4,2)", "12.50", Decimal("12.50"), "12.505"),
        ("decimal(38,20)", "0.12345678901234567891", Decimal("0.12345678901234567891"), '"x"'),
        ("string", '"x"', "x", "1"),
        ("boolean", "true", True, '"true"'),
        ("json", '{"a":1.50}', '{"a":1.50}', None),
        ("json", "1.50", "1.50", None),
        ("array<int>", "[1]", [1], '["x"]'),
        ("struct<a:int>", '{"a":1}', {"a": 1}, '{"b":1}'),
        ("map<string,int>", '{"a":1}', [("a", 1)], '{"a":"x"}'),
    ],
)
def test_declared_types(kind: str, good: str, made: Any, bad: str | None) -> None:
    _, values, errors = column(good, "null", v=kind)
    assert (values, errors) == ([made, None], {})
    if bad is not None:
        _, values, errors = column(bad, good, v=kind)
        assert values == [made]
        assert list(errors) == [0] and errors[0].startswith("the field v")


def test_times_keep_their_nanoseconds() -> None:
    kind, _, errors = column('"2026-01-01T00:00:00.123456789Z"', '"soon"', v="timestamp_ns")
    assert kind == "timestamp[ns]" and list(errors) == [1]
    made = build('{"v":"2026-01-01T00:00:00.123456789+01:00"}', v="timestamp_ns").rows
    assert made.column("v").cast(pa.int64()).to_pylist() == [1767222000123456789]
    builder = ColumnBuilder(parse_query(ALL), parse_batch_columns({"v": "timestamp_ns"}), ())
    stamped: Batch = [Message.from_value({"v": Timestamp(1_700_000_000_000_000_001)})]
    values = builder.build(stamped).rows.column("v").cast(pa.int64()).to_pylist()
    assert values == [1_700_000_000_000_000_001]


def test_bytes_are_bytes() -> None:
    builder = ColumnBuilder(parse_query(ALL), pa.schema([]), ())
    made = builder.build([Message.from_value({"v": b"\x00\xff"})])
    assert made.rows.to_pydict() == {"v": [b"\x00\xff"]}


def test_the_values_of_most_messages_decide() -> None:
    made = build('{"v":"oops"}', '{"v":1}', '{"v":2.5}', '{"v":null}', '{"v":[1]}')
    assert made.rows.to_pydict() == {"v": [1.0, 2.5, None]}
    assert made.errors == {
        0: 'the field v is "oops", which does not fit its column, double',
        4: "the field v is [1], which does not fit its column, double",
    }
    # Nothing is wrong with a field that the query does not use.
    assert build('{"v":"oops","k":1}', '{"v":1,"k":2}', sql="SELECT k FROM batch").errors == {}


def test_messages_that_are_no_objects() -> None:
    made = build('{"v":1}', "[1]", '"text"', "null", "7", "no JSON", b"\xff", '{"v":2}')
    assert made.rows.to_pydict() == {"v": [1, 2]}
    assert sorted(made.errors) == [1, 2, 3, 4, 5, 6]
    assert made.errors[1] == "the message is an array; expected an object, whose fields are columns"
    assert made.errors[5].startswith("failed to parse message as JSON")


def test_a_batch_without_columns_has_its_rows() -> None:
    assert build("{}", "{}", "{}").rows.num_rows == 3
    assert build('{"k":1}', '{"k":2}', sql="SELECT count(*) FROM batch").rows.num_rows == 2


def test_declared_columns_are_there_and_no_others() -> None:
    made = build('{"a":1,"b":2}', '{"c":3}', a="bigint", d="string")
    assert made.rows.to_pydict() == {"a": [1, None], "d": [None, None]}


def test_names_that_differ_in_capital_letters() -> None:
    made = build('{"car":1}', '{"Car":2}', '{"car":3}')
    assert made.rows.to_pydict() == {"car": [1, 3]}
    assert made.errors == {1: "the field Car has the column of car, which most messages have"}


def test_metadata_is_a_column() -> None:
    builder = ColumnBuilder(parse_query(ALL), pa.schema([]), ("topic", "partition"))
    batch = [
        Message(b'{"topic":"hidden","v":1}', {"topic": "a", "partition": 3}),
        Message(b'{"v":2}', {"partition": 4}),
    ]
    expected = {"v": [1, 2], "topic": ["a", None], "partition": [3, 4]}
    assert builder.build(batch).rows.to_pydict() == expected


def test_skipped_messages_are_neither_rows_nor_errors() -> None:
    builder = ColumnBuilder(parse_query(ALL), pa.schema([]), ())
    made = builder.build([Message(b"no JSON"), Message(b'{"v":1}'), Message(b'{"v":2}')], [0, 2])
    assert made.rows.to_pydict() == {"v": [1]}
    assert set(made.errors) <= {0}


def test_too_many_columns() -> None:
    wide = json.dumps({f"f{n}": n for n in range(2_500)})
    made = build('{"f0":1}', wide)
    assert made.rows.num_rows == 1 and "over 2000 columns" in made.errors[1]


def test_a_batch_whose_payloads_are_parsed_gives_the_same() -> None:
    chance = random.Random()
    values = [chance.choice([1, 2.5, "x", None, True, 2**64 - 1]) for _ in range(50)]
    batch = [Message(json.dumps({"v": value}).encode()) for value in values]
    builder = ColumnBuilder(parse_query(ALL), pa.schema([]), ())
    raw = builder.build(batch)
    for message in batch:
        _ = message.doc
    parsed = builder.build(batch)
    assert raw.rows.equals(parsed.rows) and raw.errors == parsed.errors


def test_a_lazy_batch_is_read_by_its_documents() -> None:
    class Content:
        size = 2

        def first(self) -> Message:
            return Message(b'{"v":1}')

        def messages(self) -> Batch:
            return [Message(b'{"v":1}'), Message(b'{"v":2}')]

        def parse(self) -> None: ...

        def documents(self) -> list[Any]:
            return [{"v": 1}, {"v": 2}]

        def column(self, name: str, of: Any) -> list[Any]:
            return []

    builder = ColumnBuilder(parse_query(ALL), pa.schema([]), ())
    assert builder.build(LazyBatch(Content())).rows.to_pydict() == {"v": [1, 2]}


def test_rows_of_a_lookup_table() -> None:
    made = build_table("cities", [{"city": "Bonn", "n": 1}, {"city": "Köln", "x": {"a": 1}}])
    assert made.to_pydict() == {"city": ["Bonn", "Köln"], "n": [1, None], "x": [None, {"a": 1}]}
    with pytest.raises(QueryError, match="row 3 of the table cities does not fit the others"):
        build_table("cities", [{"n": 1}, {"n": 2}, {"n": "x"}])


@pytest.mark.parametrize("text", ["varchar", "array<json>", "", "decimal(40,0)"])
def test_types_that_there_are_not(text: str) -> None:
    with pytest.raises(ValueError):
        parse_batch_column(text)
