"""Objects in columns: fields that are new are added at every depth, and no row beside them changes.

Values that do not fit are refused alone, with their place.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.tables.column_inference import drop_untyped, extend_type, widen_type
from streamer.connectors.tables.column_types import name_column_type, parse_column_type
from streamer.connectors.tables.column_values import fit_value
from streamer.connectors.tables.rows import (
    MAX_LEVELS,
    TableColumns,
    build_rows,
    describe_columns,
)
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.table_writer import TableWriter
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.sdk.output.protocols import encode_batch
from tests.connectors.tables.table_kinds import KINDS, TableKind

EX = Execution(lambda: 0)


class Writing:
    """A writer of a table, whose rows come from as many tasks as they are given in."""

    def __init__(self, kind: TableKind, directory: Path, **options: Any) -> None:
        keys, is_open = options.get("keys", ()), options.get("is_open", True)
        columns = options.get("columns", {})
        declared = pa.schema([(name, parse_column_type(text)) for name, text in columns.items()])
        client = kind.make(directory, keys=keys)
        cache = ColumnCache()
        self.make = lambda: TableOutput(client, declared, cache, is_open=is_open, keys=keys)
        self.output = self.make()
        self.writer = TableWriter(self.output, lambda: "w")
        self._batch = client.find_committed("w")

    def write(self, *tasks: list[dict[str, Any]]) -> list[str]:
        """Write a micro-batch; return why messages were refused."""
        frames, reasons = [], []
        for task in tasks:
            messages = [Message.from_value(row) for row in task]
            routed, error = encode_batch(self.make(), messages, EX)
            reasons += [] if error is None else list(map(str, error.errors.values()))
            frames += [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in routed]
        self._batch += 1
        try:
            self.writer.write(self._batch, frames)
        except RefusedRoutesError as error:
            reasons += [why for _, why in error.refused]
        return [one.split(": ", 1)[-1] if "cannot write" in one else one for one in reasons]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("keys", [[], ["n"]], ids=["append", "upsert"])
def test_objects_get_fields_and_rows_beside_them_stay(
    kind: TableKind, keys: list[str], tmp_path: Path
) -> None:
    columns = {"m": "map<string,struct<a:bigint>>"}
    writing = Writing(kind, tmp_path, keys=keys, columns=columns)
    first = [
        {"n": 1, "s": {"x": 1}, "l": [{"x": 1}], "m": {"k": {"a": 1}}},
        {"n": 2, "s": None, "l": None, "m": None},
        {"n": 3, "s": {"x": 3}, "l": [], "m": {}},
    ]
    assert writing.write(first) == []
    # Two tasks add other fields at the same places, one of them whole and not whole.
    more = [
        [{"n": 4, "s": {"x": 4, "y": {"z": 1}}, "l": [{"x": 4}, {"w": "a"}], "m": {}}],
        [{"n": 5, "s": {"y": {"z": 2.5, "u": True}}, "l": None, "m": {"k": {"a": 2}}}],
    ]
    assert writing.write(*more) == []
    assert writing.write([{"n": 6, "s": {"y": {"z": 3}}}]) == []
    # Of objects in maps, delta-rs could not read the files of before any more.
    wide = kind.name == "iceberg"
    refused = writing.write([{"n": 1, "s": {"x": 1}, "m": {"k": {"a": 7, "b": "c"}}}])
    assert refused == (
        [] if wide else ["the field m.k.b is no field of its column, struct<a:bigint>"]
    )
    schema = writing.output.client.load_columns()
    assert schema is not None
    assert describe_columns(schema) == {
        "m": f"map<string,struct<a:bigint{',b:string' if wide else ''}>>",
        "n": "bigint",
        "s": "struct<x:bigint,y:struct<z:double,u:boolean>>",
        "l": "array<struct<x:bigint,w:string>>",
    }
    rows = [
        (row["n"], row["s"], row["l"], row["m"] if row["m"] is None else dict(row["m"]))
        for row in kind.rows(tmp_path)
    ]
    more_of_map = {"b": None} if wide else {}
    wanted = [
        (1, {"x": 1, "y": None}, [{"x": 1, "w": None}], {"k": {"a": 1, **more_of_map}}),
        (2, None, None, None),
        (3, {"x": 3, "y": None}, [], {}),
        (4, {"x": 4, "y": {"z": 1.0, "u": None}}, [{"x": 4, "w": None}, {"x": None, "w": "a"}], {}),
        (5, {"x": None, "y": {"z": 2.5, "u": True}}, None, {"k": {"a": 2, **more_of_map}}),
        (6, {"x": None, "y": {"z": 3.0, "u": None}}, None, None),
    ]
    if wide:
        again = (1, {"x": 1, "y": None}, None, {"k": {"a": 7, "b": "c"}})
        wanted = [again, *wanted[1:]] if keys else [wanted[0], again, *wanted[1:]]
    assert sorted(rows, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_value_in_an_object_that_does_not_fit_is_refused_alone(
    kind: TableKind, tmp_path: Path
) -> None:
    writing = Writing(kind, tmp_path)
    assert writing.write([{"n": 1, "s": {"x": 1}, "l": [{"x": 1}]}]) == []
    reasons = writing.write(
        [
            {"n": 2, "s": {"x": "text", "new": 1}},
            {"n": 3, "l": [{"x": 1}, {"x": 2.5}]},
            {"n": 4, "s": {"x": 4, "none": None, "empty": [], "deep": {"empty": {}}}},
            {"n": 5, "s": 7},
        ]
    )
    assert sorted(reasons) == [
        "the field l.1.x is 2.5, which does not fit its column, bigint",
        "the field s is 7, which does not fit its column, struct<x:bigint>",
        'the field s.x is "text", which does not fit its column, bigint',
    ]
    # A message that is refused adds no field, and what has no type yet adds none.
    assert kind.rows(tmp_path) == [
        {"n": 1, "s": {"x": 1}, "l": [{"x": 1}]},
        {"n": 4, "s": {"x": 4}, "l": None},
    ]
    # Two tasks that know nothing of one another: the first decides.
    reasons = writing.write([{"n": 6, "s": {"y": "a"}}], [{"n": 7, "s": {"y": 1}}])
    assert reasons == ["the field s.y is 1, which does not fit its column, string"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_closed_table_takes_no_further_field_of_an_object(
    kind: TableKind, tmp_path: Path
) -> None:
    Writing(kind, tmp_path).write([{"n": 1, "s": {"x": 1}}])
    closed = Writing(kind, tmp_path, is_open=False)
    assert closed.write([{"n": 2, "s": {"x": 2, "y": 1}}, {"n": 3, "s": {"x": 3}}]) == [
        "the field s.y is no field of its column, struct<x:bigint>"
    ]
    # A task that could not look at the table leaves the decision to the driver.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    blind = Writing(kind, elsewhere)
    messages = [
        [Message.from_value(row)] for row in ({"n": 4, "z": 1}, {"n": 5, "s": {"x": 5, "y": 6}})
    ]
    frames = [
        Frame(FrameKind.DATA, 0, 0, 0, 0, *blind.output.encode(one, EX)[0]) for one in messages
    ]
    with pytest.raises(RefusedRoutesError) as error:
        closed.writer.write(9, frames)
    assert [why for _, why in error.value.refused] == [
        "the field z is no column of the table",
        "the field s.y is no field of its column, struct<x:bigint>",
    ]
    assert [row["n"] for row in kind.rows(tmp_path)] == [1, 3]


def test_names_in_objects_follow_the_rules_of_the_format() -> None:
    columns = TableColumns(
        pa.schema([("s", parse_column_type("struct<x:bigint>"))]),
        is_open=True,
        explain_name=lambda name: "it has a dot in it" if "." in name else "",
    )
    made = build_rows([{"s": {"a.b": 1}}, {"s": {"x": 1}}], columns)
    assert list(made.errors) == [0]
    assert made.rows.schema.field("s").type == columns.schema.field("s").type


_LEAVES = st.one_of(st.none(), st.integers(-9, 9), st.text("ab", max_size=2), st.booleans())
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(
        [
            "struct<x:bigint>",
            "array<struct<x:struct<y:string>>>",
            "map<string,struct<z:array<struct<x:boolean>>>>",
        ]
    ),
    st.lists(_VALUES, max_size=4),
)
def test_a_type_only_grows_and_holds_what_it_held(text: str, values: list[Any]) -> None:
    kind = parse_column_type(text)
    grown = kind
    for value in json.loads(json.dumps(values)):
        before = grown
        grown = widen_type(grown, value)
        # Everything that fits before fits after, and a second look adds nothing.
        assert extend_type(before, before, grown) == grown
        assert extend_type(grown, grown, before) == grown
        assert widen_type(grown, value) == grown
        pruned = drop_untyped(grown, value)
        assert drop_untyped(grown, pruned) == pruned
        try:
            fit_value(value, before)
        except ValueError:
            continue
        fit_value(value, grown)
    assert parse_column_type(name_column_type(grown)) == grown


def nest(levels: int, *, in_objects: bool) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"x": value} if in_objects else [value]
    return value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("in_objects", [True, False], ids=["objects", "lists"])
def test_a_message_that_is_nested_too_deep_is_refused_alone(
    kind: TableKind, in_objects: bool, tmp_path: Path
) -> None:
    writing = Writing(kind, tmp_path)
    deepest = nest(MAX_LEVELS, in_objects=in_objects)
    hostile = [nest(levels, in_objects=in_objects) for levels in (MAX_LEVELS + 1, 100, 900)]
    new = writing.write([{"n": 1, "a": deepest}, *({"n": 0, "a": one} for one in hostile)])
    # The same in a column that is there, and in an object whose column is there.
    known = writing.write([{"n": 2, "a": deepest}, *({"n": 0, "a": one} for one in hostile)])
    assert writing.write([{"n": 3, "s": {"y": 1}}]) == []
    inside = writing.write([{"n": 4, "s": {"y": 2}}, {"n": 0, "s": {"z": hostile[-1]}}])
    assert [len(new), len(known), len(inside)] == [3, 3, 1]
    assert all("is nested deeper than 32 levels" in why for why in [*new, *known, *inside])
    rows = kind.rows(tmp_path)
    assert [row["n"] for row in rows] == [1, 2, 3, 4]
    assert [row["a"] for row in rows[:2]] == [deepest] * 2
