"""`avro`: bytes and texts as Avro's specification has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.sdk.worker_resources import WorkerResources

from .conftest import Make, Run

SCHEMA = (
    '{"type":"record","name":"R","namespace":"n","fields":['
    '{"name":"a","type":"long"},{"name":"b","type":["null","string"]},'
    '{"name":"c","type":"bytes"},{"name":"e","type":{"type":"enum","name":"E","symbols":["X","Y"]}},'
    '{"name":"u","type":["null",{"type":"record","name":"S","fields":['
    '{"name":"x","type":"float"}]},{"type":"record","name":"T","fields":['
    '{"name":"x","type":"float"}]}]},'
    '{"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}}]}'
)
# By hand, after the specification: zigzag numbers, lengths, the numbers of types and symbols.
BINARY = "02" + "020468" + "69" + "04ff01" + "02" + "04" + "0000c03f" + "dcbcaec3ec5b"
DOCUMENT = (
    '{"a":1,"b":{"string":"hi"},"c":"\\u00ff\\u0001","e":"Y","t":1577934245678,'
    '"u":{"n.T":{"x":1.5}}}'
)


def changed(make: Make, a_run: Run, fields: str, raw: bytes, schema: str = SCHEMA) -> Message:
    processor = make(f"avro:\n  {fields}\n  schema: '{schema}'")
    [[found]] = processor.process([Message(raw)], a_run.ex)
    return found


def test_bytes_become_json_with_the_names_of_types(make: Make, a_run: Run) -> None:
    found = changed(make, a_run, "operator: to_json\n  encoding: binary", bytes.fromhex(BINARY))
    assert found.error is None
    assert found.raw.decode() == DOCUMENT.replace("\\u00ff\\u0001", "\u00ff\\u0001")


@pytest.mark.parametrize(
    "given",
    [DOCUMENT, DOCUMENT.replace('{"string":"hi"}', '"hi"').replace('{"n.T":{"x":1.5}}', "null")],
)
def test_json_becomes_bytes_with_or_without_the_names_of_types(
    given: str, make: Make, a_run: Run
) -> None:
    found = changed(make, a_run, "operator: from_json\n  encoding: binary", given.encode())
    assert found.error is None
    assert found.raw.hex() == (BINARY if "n.T" in given else BINARY.replace("040000c03f", "00"))


def test_an_object_may_begin_with_the_fingerprint_of_its_schema(make: Make, a_run: Run) -> None:
    # The fingerprint that the specification's own algorithm gives for "int".
    yaml = "operator: from_json\n  encoding: single"
    found = changed(make, a_run, yaml, b"27", '{"type":"int"}')
    assert found.raw.hex() == "c301" + fingerprint(b'"int"').hex() + "36"
    yaml = "operator: to_json\n  encoding: single"
    assert changed(make, a_run, yaml, found.raw, '{"type":"int"}').raw == b"27"
    other = changed(make, a_run, yaml, found.raw, '{"type":"long"}')
    assert other.error is not None and "begin with the fingerprint of the schema" in other.error


def fingerprint(text: bytes) -> bytes:
    """CRC-64-AVRO, as the specification describes it."""
    empty = 0xC15D213AA4D7A795
    value = empty
    for byte in text:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (empty if value & 1 else 0)
    return value.to_bytes(8, "little")


def test_text_is_checked_and_written_in_the_schemas_order(make: Make, a_run: Run) -> None:
    found = changed(make, a_run, "operator: from_json", DOCUMENT.encode())
    assert found.raw.decode().startswith(
        '{"a":1,"b":{"string":"hi"},"c":"\\u00ff\\u0001","e":"Y","u"'
    )
    assert changed(make, a_run, "operator: to_json", found.raw).error is None


MADE = (
    'root = {"s": "ab ".bytes(), "u": "c".bytes(), "b": "/w==".decode("base64"), "n": 5.0, '
    '"f": "xy".bytes(), "e": "X".bytes(), "m": {"k": "v".bytes()}, '
    '"t": "2025-01-16".ts_parse("2006-01-02")}'
)
OF_BYTES = (
    '{"type":"record","name":"R","fields":[{"name":"s","type":"string"},'
    '{"name":"u","type":["null","string"]},{"name":"b","type":"bytes"},'
    '{"name":"n","type":"long"},{"name":"f","type":{"type":"fixed","name":"F","size":2}},'
    '{"name":"e","type":{"type":"enum","name":"E","symbols":["X","Y"]}},'
    '{"name":"m","type":{"type":"map","values":"string"}},{"name":"t","type":"string"}]}'
)


@pytest.mark.parametrize("encoding", ["textual", "binary"])
def test_bytes_of_a_mapping_are_written_as_bytes_or_text_never_as_base64(
    encoding: str, make: Make, a_run: Run
) -> None:
    [[message]] = make(f"mapping: '{MADE}'").process([Message(b"{}")], a_run.ex)
    fields = f"encoding: {encoding}\n  schema: '{OF_BYTES}'"
    [[found]] = make(f"avro:\n  operator: from_json\n  {fields}").process([message], a_run.ex)
    assert found.error is None
    [[back]] = make(f"avro:\n  operator: to_json\n  {fields}").process([found], a_run.ex)
    assert back.doc == {
        "s": "ab ",
        "u": {"string": "c"},
        "b": "\u00ff",
        "n": 5,
        "f": "xy",
        "e": "X",
        "m": {"k": "v"},
        "t": "2025-01-16T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("fields", "raw", "error"),
    [
        ("operator: from_json", b"nope", "parsing message as JSON: invalid character 'o'"),
        ("operator: from_json", b'{"a":"x"}', "converting JSON to Avro schema: "),
        ("operator: to_json", b'{"a":1}', "converting Avro document to JSON: "),
        (
            "operator: to_json\n  encoding: binary",
            b"\x02\x02",
            "converting Avro document to JSON: ",
        ),
    ],
)
def test_what_does_not_fit_is_marked(
    fields: str, raw: bytes, error: str, make: Make, a_run: Run
) -> None:
    found = changed(make, a_run, fields, raw)
    assert found.raw == raw and found.error is not None and found.error.startswith(error)


def test_a_schema_is_read_from_a_file(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "s.avsc"
    path.write_text('"int"')
    yaml = f"avro: {{operator: to_json, schema_path: 'file://{path}'}}"
    make(yaml)
    path.unlink()
    with pytest.raises(StreamerError, match="loading Avro schema definition: file://"):
        make(yaml)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("operator: to_json", "a schema must be specified with either"),
        ("operator: to_json, schema: '{'", "field schema: parsing schema: "),
        ('operator: to_json, schema: \'{"type":"what"}\'', "field schema: parsing schema: "),
        ("operator: to_json, schema_path: a.avsc", "must start with file:// or http://"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str, make: Make) -> None:
    with pytest.raises(ConfigError, match=text):
        make(f"avro: {{{fields}}}")


@pytest.mark.parametrize("fields", ["avro: {operator: to_json, ", "json_schema: {"])
def test_a_schema_is_read_once_for_all_tasks_of_a_worker(fields: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"type": "string"}')
    text = f"pipeline: {{processors: [{{{fields}schema_path: 'file://{path}'}}}}]}}"
    config = parse_config(text, env={})
    lasting = WorkerResources()
    for _ in range(2):
        assert build_context(config.resources, worker_resources=lasting).build(config.processors[0])
        path.unlink(missing_ok=True)
