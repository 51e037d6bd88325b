"""Rows from messages: what fits is a row, what does not is explained; and rows of many tasks."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.tables import rows as rows_module
from streamer.connectors.tables.arrow_streams import decode_batches, encode_batch
from streamer.connectors.tables.column_types import parse_column_type
from streamer.connectors.tables.row_collector import collect_rows
from streamer.connectors.tables.row_encoder import RowEncoder
from streamer.connectors.tables.rows import (
    LearnedColumns,
    TableColumns,
    build_rows,
    describe_columns,
)
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection

NO_COLUMNS = pa.schema([])


def columns(is_open: bool = True, **kinds: str) -> TableColumns:
    schema = pa.schema([(name, parse_column_type(kind)) for name, kind in kinds.items()])
    return TableColumns(schema, is_open)


def encoded(documents: list[Any], known: TableColumns) -> bytes:
    return encode_batch(build_rows(documents, known).rows)


def test_messages_are_rows_and_bad_ones_are_explained() -> None:
    made = build_rows(
        [{"n": 1, "new": "x"}, [], {"n": 1.5}, {"n": None, "new": 3}, None], columns(n="bigint")
    )
    assert made.rows.to_pylist() == [{"n": 1, "new": "x"}]
    assert made.errors == {
        1: "the message is an array; expected an object, whose fields are columns",
        2: "the field n is 1.5, which does not fit its column, bigint",
        3: "the field new is 3, which does not fit its column, string",
        4: "the message is null; expected an object, whose fields are columns",
    }


def test_a_table_that_is_closed_takes_no_other_field_unless_it_is_null() -> None:
    made = build_rows([{"n": 1, "x": None}, {"n": 2, "x": 1}], columns(False, n="bigint"))
    assert made.rows.to_pylist() == [{"n": 1}]
    assert made.errors == {1: "the field x is no column of the table, which has n"}


def test_keys_and_columns_without_null_are_there() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.int64())])
    known = TableColumns(schema, True, required=("b", "k"))
    made = build_rows([{"a": 1, "b": 2, "k": 3}, {"b": 2, "k": 3}, {"a": 1, "b": None}], known)
    assert made.rows.to_pylist() == [{"a": 1, "b": 2, "k": 3}]
    assert made.errors[1] == "the field a is null, or not there, and must not be"
    assert made.errors[2].startswith("the field b is null")
    assert build_rows([{"a": 1, "b": 2}], known).errors[0].startswith("the field k is null")


def test_fields_without_end_do_not_become_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "MAX_COLUMNS", 3)
    made = build_rows([{"a": 1}, {"b": 1, "c": 2, "d": 3}, {"a": 2}], columns(a="bigint"))
    assert made.rows.to_pylist() == [{"a": 1, "b": None, "c": None}, {"a": 2, "b": None, "c": None}]
    assert made.errors == {1: "the table would get more than 3 columns"}


def test_names_that_cannot_be_columns_are_refused() -> None:
    known = TableColumns(NO_COLUMNS, True, lambda name: "it has a dot in it" * ("." in name))
    made = build_rows([{"a.b": 1}, {"a": 1}], known)
    assert made.errors == {0: "the field 'a.b' cannot be a column: it has a dot in it"}


def test_rows_of_several_batches_stand_behind_one_another() -> None:
    body = encoded([{"n": 1}], columns(n="bigint")) + encoded([{"s": "x"}], columns())
    assert [table.to_pylist() for table in decode_batches(body)] == [[{"n": 1}], [{"s": "x"}]]
    assert describe_columns(next(decode_batches(body)).schema) == {"n": "bigint"}


def test_tasks_that_found_other_types_make_one_table() -> None:
    bodies = [
        encoded([{"n": 1, "v": 1}], columns(n="bigint")),
        encoded([{"n": 2, "v": 2.5, "w": "x"}], columns(n="bigint")),
        encoded([{"n": 3, "w": 7}], columns(n="bigint")),
    ]
    table, _, refused = collect_rows(bodies, columns(n="bigint"))
    assert table.to_pylist() == [
        {"n": 1, "v": 1.0, "w": None},
        {"n": 2, "v": 2.5, "w": "x"},
    ]
    assert [(one.source, json.loads(one.body), one.reason) for one in refused] == [
        (2, {"n": 3, "w": 7}, "the field w is 7, which does not fit its column, string")
    ]
    # When it is sent again, it is a row as JSON, judged by the columns of then.
    again, _, refused = collect_rows([refused[0].body], columns(n="bigint", w="string"))
    assert again.num_rows == 0
    assert len(refused) == 1
    again, _, refused = collect_rows([b'{"n":3,"w":"7"}'], columns(n="bigint", w="string"))
    assert again.to_pylist() == [{"n": 3, "w": "7"}]
    assert refused == []


def test_the_type_of_a_column_of_the_table_stays() -> None:
    body = encoded([{"v": 2.5}, {"v": 3.0}], columns())
    table, _, refused = collect_rows([body], columns(v="bigint"))
    assert table.to_pylist() == [{"v": 3}]
    assert [one.reason for one in refused] == [
        "the field v is 2.5, which does not fit its column, bigint"
    ]


def test_an_encoder_looks_at_the_table_again_once_when_something_is_new() -> None:
    asked: list[bool] = []

    def load(refresh: bool) -> TableColumns:
        asked.append(refresh)
        return columns(n="double" if refresh else "bigint")

    encoder = RowEncoder("the table t", load)
    batch = [Message(b'{"n":1}'), Message(b'{"n":2.5}')]
    [table] = decode_batches(encoder.encode(batch))
    assert table.column("n").to_pylist() == [1.0, 2.5]
    with pytest.raises(SendError) as error:
        encoder.encode([*batch, Message(b"{"), Message(b'{"n":"x"}')])
    assert asked == [False, True, False]
    assert error.value.errors[1] == (
        "cannot write to the table t: the field n is 2.5, which does not fit its column, bigint"
    )
    assert sorted(error.value.errors) == [1, 2, 3]
    texts = error.value.errors.values()
    assert all(isinstance(text, Rejection) and text.reason == Reason.INVALID for text in texts)


VALUES = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 2.0, 1 << 70, -1.5]),
    st.sampled_from(["", "a", "2026-01-01T00:00:00Z", "\ud800"]),
    st.booleans(),
    st.lists(st.integers(0, 1), max_size=1),
    st.fixed_dictionaries({}, optional={"x": st.integers(0, 1)}),
)
DOCUMENTS = st.one_of(
    st.fixed_dictionaries({"n": st.integers(0, 2)}, optional={"d": st.integers(0, 2)}),
    st.dictionaries(st.sampled_from("abdn"), VALUES, max_size=4),
    st.sampled_from([None, 3, []]),
)


@given(st.lists(st.lists(DOCUMENTS, max_size=4), max_size=6))
def test_what_was_learned_of_earlier_messages_changes_no_row(batches: list[list[Any]]) -> None:
    known = columns(d="double")
    learned = RowEncoder("files", lambda refresh: known, learned=LearnedColumns())
    plain = RowEncoder("files", lambda refresh: known)

    def encode(encoder: RowEncoder) -> tuple[list[dict[str, Any]], dict[str, str], list[Any]]:
        bodies, errors = [], []
        for batch in batches:
            messages = [Message.from_value(one) for one in batch]
            try:
                bodies.append(encoder.encode(messages))
            except SendError as error:
                errors.append(error.errors)
        made = collect_rows(bodies, known)
        rows = made.rows.to_pylist()
        return rows, describe_columns(made.rows.schema), [errors, made.refused]

    assert encode(learned) == encode(plain)


def test_messages_that_are_alike_are_built_without_inference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = RowEncoder("files", lambda refresh: columns(d="double"), learned=LearnedColumns())
    batch = [Message.from_value({"n": 1, "t": "a", "d": 1}), Message.from_value({"n": None})]
    first = encoder.encode(batch)
    monkeypatch.setattr(rows_module, "infer_columns", None)
    assert encoder.encode(batch) == first
