"""Column types by name, values that fit columns, and types that are found from values."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.tables.column_inference import infer_columns
from streamer.connectors.tables.column_types import (
    TIMESTAMP,
    name_column_type,
    normalize_schema,
    parse_column_type,
)
from streamer.connectors.tables.column_values import build_column
from streamer.core.json.parse import parse_json
from streamer.core.timestamps import Timestamp


@pytest.mark.parametrize(
    "text",
    [
        *("boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp"),
        *("timestamp_ntz", "decimal(38,0)", "array<bigint>", "map<string,array<double>>"),
        "struct<a:string,b:struct<c:array<decimal(3,1)>>>",
    ],
)
def test_a_type_has_one_name(text: str) -> None:
    assert name_column_type(parse_column_type(text)) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "ends too early"),
        ("strnig", "has the type 'strnig'; expected one of boolean"),
        ("decimal(39,1)", "expected 1 to 38 digits"),
        ("decimal(3,4)", "expected 1 to 38 digits"),
        ("array<int", "has 'its end' where '>' is expected"),
        ("map<int,int>", "keys are no strings"),
        ("int int", "has 'int' behind the type"),
        ("struct<a int>", "where ':' is expected"),
        ("array<" * 30 + "int" + ">" * 30, "nested deeper than 20"),
    ],
)
def test_a_text_that_names_no_type_is_explained(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=".*") as error:
        parse_column_type(text)
    assert problem in str(error.value)


@given(st.text(max_size=30))
def test_any_text_is_a_type_or_explained(text: str) -> None:
    try:
        kind = parse_column_type(text)
    except ValueError:
        return
    assert parse_column_type(name_column_type(kind)) == kind


_AT = datetime(2026, 1, 1, 10, 0, 0, 123456, UTC)

FITS = [
    ("bigint", 3.0, 3),
    ("bigint", -(1 << 63), -(1 << 63)),
    ("int", 1 << 30, 1 << 30),
    ("double", 3, 3.0),
    ("double", 1 << 60, float(1 << 60)),
    ("boolean", True, True),
    ("string", "é", "é"),
    ("binary", "é", "é".encode()),
    ("timestamp", "2026-01-01T10:00:00.123456789Z", _AT),
    ("timestamp", "2026-01-01T12:00:00.123456+02:00", _AT),
    ("timestamp", Timestamp(1_767_261_600_123_456_789), _AT),
    ("timestamp_ntz", "2026-01-01T10:00:00.123456", _AT.replace(tzinfo=None)),
    ("timestamp_ntz", "2026-01-01T10:00:00.123456Z", _AT.replace(tzinfo=None)),
    ("date", "2026-01-01", date(2026, 1, 1)),
    ("decimal(10,2)", "1.25", Decimal("1.25")),
    ("decimal(10,2)", 0.1, Decimal("0.10")),
    ("decimal(10,2)", 7, Decimal("7.00")),
    ("array<bigint>", [1, None, 2.0], [1, None, 2]),
    ("struct<a:bigint,b:string>", {"a": 1}, {"a": 1, "b": None}),
    ("map<string,double>", {"x": 1, "y": None}, [("x", 1.0), ("y", None)]),
]

MISFITS = [
    ("bigint", 3.5, "is 3.5, which does not fit its column, bigint"),
    ("bigint", 1 << 63, "does not fit"),
    ("int", 1 << 31, "does not fit"),
    ("bigint", "3", "does not fit"),
    ("bigint", True, "does not fit"),
    ("double", "x", "does not fit"),
    ("double", False, "does not fit"),
    ("boolean", 1, "does not fit"),
    ("string", 1, "does not fit"),
    ("string", "\ud800", "does not fit"),
    ("timestamp", "2026-01-01T10:00:00", "does not fit"),
    ("timestamp", "yesterday", "does not fit"),
    ("timestamp", 1_767_261_600, "does not fit"),
    ("date", "2026-13-01", "does not fit"),
    ("date", "2026-01-01T10:00:00Z", "does not fit"),
    ("decimal(10,2)", "1.255", "does not fit"),
    ("decimal(3,2)", 12.5, "does not fit"),
    ("decimal(10,2)", "NaN", "does not fit"),
    ("array<bigint>", [1, "x"], '.1 is "x", which does not fit its column, bigint'),
    ("array<bigint>", 1, "does not fit"),
    ("struct<a:bigint>", {"b": 1}, ".b is no field of its column, struct<a:bigint>"),
    ("struct<a:struct<b:bigint>>", {"a": {"b": "x"}}, '.a.b is "x"'),
    ("map<string,double>", {"x": "y"}, '.x is "y"'),
    ("map<string,double>", [], "does not fit"),
]


@pytest.mark.parametrize(("kind", "value", "cell"), FITS)
def test_a_value_fits_whatever_is_beside_it(kind: str, value: Any, cell: Any) -> None:
    column, errors = build_column([value, None], parse_column_type(kind))
    assert column.to_pylist() == [cell, None]
    assert errors == {}


@pytest.mark.parametrize(("kind", "value", "problem"), MISFITS)
def test_a_value_that_does_not_fit_is_alone(kind: str, value: Any, problem: str) -> None:
    good = next(fitting for name, fitting, _ in FITS if name == "bigint")
    neighbour = None if kind != "bigint" else good
    column, errors = build_column([neighbour, value, neighbour], parse_column_type(kind))
    assert list(errors) == [1]
    assert problem in str(errors[1])
    assert column.null_count == (1 if kind == "bigint" else 3)


_NUMBERS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.lists(st.one_of(_NUMBERS, st.text(max_size=4)), max_size=8))
def test_columns_of_many_values_are_those_of_each(values: list[Any]) -> None:
    """What Arrow takes at once, and what is looked at one by one, is the same."""
    for name in ("bigint", "double", "string", "boolean", "timestamp"):
        kind = parse_column_type(name)
        column, errors = build_column(values, kind)
        for index, value in enumerate(values):
            single, error = build_column([value, []], kind)
            assert column[index].as_py() == single[0].as_py()
            assert (index in errors) == (0 in error)


def test_numbers_keep_the_digits_that_they_are_written_with() -> None:
    value = parse_json(b"[9007199254740993, 9007199254740993.0, 1e3, 99999999999999999999]")
    column, errors = build_column(value, pa.int64())
    assert column.to_pylist()[0] == 9007199254740993
    assert column.to_pylist()[2] == 1000
    assert list(errors) == [3]


def test_types_of_new_columns_hold_all_values() -> None:
    documents = [
        {"a": 1, "b": None, "c": [], "s": {"x": 1}, "known": "any"},
        {"a": 1.5, "b": "text", "c": [1], "s": {"y": "z"}},
        {"b": 7, "c": [2.5], "t": Timestamp(0), "n": None},
    ]
    columns = infer_columns(documents, ["known"])
    assert {name: name_column_type(kind) for name, kind in columns.items()} == {
        "a": "double",
        "s": "struct<x:bigint,y:string>",
        "b": "string",
        "c": "array<double>",
        "t": "timestamp",
    }


_DOCUMENTS = st.recursive(
    st.one_of(_NUMBERS, st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), _DOCUMENTS, max_size=3), max_size=4))
def test_any_document_has_columns_that_hold_the_first_value(documents: list[Any]) -> None:
    documents = [json.loads(json.dumps(one)) for one in documents]
    for name, kind in infer_columns(documents, []).items():
        values = [one.get(name) for one in documents]
        build_column(values, kind)  # The others fit, or are explained: nothing breaks down.
        assert name_column_type(kind)


def test_forms_of_one_type_in_memory_are_one_type() -> None:
    schema = pa.schema(
        [
            ("a", pa.large_string()),
            ("b", pa.large_list(pa.large_binary())),
            pa.field("c", pa.struct([("d", pa.string_view())]), nullable=False),
            ("e", pa.map_(pa.string(), pa.large_string())),
            ("t", TIMESTAMP),
        ]
    )
    assert normalize_schema(schema) == pa.schema(
        [
            ("a", pa.string()),
            ("b", pa.list_(pa.binary())),
            pa.field("c", pa.struct([("d", pa.string())]), nullable=False),
            ("e", pa.map_(pa.string(), pa.string())),
            ("t", TIMESTAMP),
        ]
    )
