"""`parquet_encode` and `parquet_decode`, against pyarrow's own reader and writer."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from streamer.core.errors import ConfigError
from streamer.core.message import Message

from .conftest import Make, Run, messages

SCHEMA = """\
parquet_encode:
  schema:
    - {name: id, type: INT64}
    - {name: small, type: INT32, optional: true}
    - {name: text, type: UTF8, optional: true}
    - {name: raw, type: BYTE_ARRAY, optional: true}
    - {name: on, type: BOOLEAN, optional: true}
    - {name: at, type: TIMESTAMP, optional: true}
    - {name: any, type: JSON, optional: true}
    - {name: tags, type: UTF8, repeated: true}
    - {name: place, optional: true, fields: [{name: x, type: DOUBLE}, {name: y, type: FLOAT}]}
"""


def encoded(make: Make, a_run: Run, yaml: str, *documents: Any) -> parquet.ParquetFile:
    batch = messages(*(json.dumps(one) for one in documents))
    batch[0] = batch[0].with_metadata({"k": "first"})
    [[found]] = make(yaml).process(batch, a_run.ex)
    assert found.error is None and found.meta == {"k": "first"}
    return parquet.ParquetFile(io.BytesIO(found.raw))


def test_a_batch_becomes_a_file_that_others_can_read(make: Make, a_run: Run) -> None:
    full = {"id": 1, "small": 2.0, "text": "é", "raw": "b", "on": True, "any": {"b": 1, "a": []}}
    full |= {"at": "2020-01-02T03:04:05.5+01:00", "tags": ["x", "y"], "place": {"x": 1, "y": 2}}
    yaml = SCHEMA + "  default_compression: zstd\n  default_timestamp_unit: MILLISECOND"
    file = encoded(make, a_run, yaml, full, {"id": 2, "other": 5})
    column = file.metadata.row_group(0).column(2)
    assert column.compression == "ZSTD" and "DELTA_LENGTH_BYTE_ARRAY" in column.encodings
    first, second = file.read().to_pylist()
    assert first == {
        **full,
        "raw": b"b",
        "any": '{"a":[],"b":1}',
        "at": datetime(2020, 1, 2, 2, 4, 5, 500_000, tzinfo=UTC),
    }
    assert second == {**dict.fromkeys(full), "id": 2, "tags": []}


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({}, "field id: missing and non-optional"),
        ({"id": "x"}, "field id: expected number value, got string"),
        ({"id": 1, "tags": "x"}, "field tags: expected array, got string"),
        ({"id": 1, "place": {"x": 1}}, "field place: field y: missing and non-optional"),
        ({"id": 1, "at": "soon"}, "field at: "),
        ({"id": 1, "small": 1 << 40}, "Value 1099511627776 too large to fit in C integer type"),
        ([], "expected object, got array"),
    ],
)
def test_a_row_that_does_not_fit_marks_the_batch(
    document: Any, error: str, make: Make, a_run: Run
) -> None:
    batch = messages('{"id":1}', json.dumps(document))
    [found] = make(SCHEMA).process(batch, a_run.ex)
    assert [message.raw for message in found] == [message.raw for message in batch]
    assert all((message.error or "").startswith(error) for message in found), found[0].error


def _file() -> bytes:
    at = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    table = pa.table(
        {
            "a": [1, None],
            "at": pa.array([at, None], pa.timestamp("us", "UTC")),
            "raw": [b"\xff", b""],
            "list": pa.array([[{"at": at}], []], pa.list_(pa.struct([("at", pa.timestamp("ms"))]))),
            "d": pa.array([Decimal("1.50"), None]),
        }
    )
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("version", "at", "inner"),
    [
        ("v1", 1_577_934_245_000_000, 1_577_934_245_000),
        ("v2", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
    ],
)
def test_every_row_becomes_a_message(
    version: str, at: Any, inner: Any, make: Make, a_run: Run
) -> None:
    processor = make(f"parquet_decode: {{handle_logical_types: {version}}}")
    batch = [Message(_file(), {"k": 1}), Message(b"no file")]
    [found] = processor.process(batch, a_run.ex)
    assert [json.loads(message.raw) for message in found[:2]] == [
        {"a": 1, "at": at, "raw": "/w==", "list": [{"at": inner}], "d": "1.50"},
        {"a": None, "at": None, "raw": "", "list": [], "d": None},
    ]
    assert found[1].meta == {"k": 1}
    assert found[2].raw == b"no file" and found[2].error is not None


def test_what_is_encoded_is_decoded(make: Make, a_run: Run) -> None:
    document = {"id": 1, "text": "x", "tags": ["a"], "place": {"x": 0.5, "y": 2}}
    batch = make(SCHEMA).process(messages(json.dumps(document)), a_run.ex)[0]
    [[found]] = make("parquet_decode: {}").process(batch, a_run.ex)
    assert {key: value for key, value in json.loads(found.raw).items() if value is not None} == (
        document
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("{}", "schema is not set; expected the columns"),
        ("{schema_metadata: s}", "schema_metadata is not available"),
        ("{schema: [{name: a, type: INT96}]}", "field a type of 'INT96' not recognised"),
        ("{schema: [{name: a}]}", "field a type of '' not recognised"),
        (
            "{schema: [{name: a, type: INT32, optional: true, repeated: true}]}",
            "column a cannot be both repeated and optional",
        ),
        ("{schema: [{name: a, fields: [{name: b, type: X}]}]}", "field b type of 'X'"),
    ],
)
def test_a_schema_that_cannot_be_is_refused_before_it_runs(
    fields: str, text: str, make: Make
) -> None:
    with pytest.raises(ConfigError, match=text):
        make(f"parquet_encode: {fields}")
