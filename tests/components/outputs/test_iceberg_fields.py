"""Fields of the output `iceberg` as Connect has them: what each does to a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from streamer.config import parse_config
from streamer.config.load import lint_text
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.stage.output_stage import OutputStage
from streamer.plan import make_plan
from tests.connectors.tables.table_kinds import open_catalog

SCHEMA = {
    "type": "OBJECT",
    "children": [
        {"name": "n", "type": "INT32"},
        {"name": "inner", "type": "OBJECT", "children": [{"name": "x", "type": "FLOAT32"}]},
        {"name": "absent", "type": "STRING"},
        {"name": "times", "type": "ARRAY", "children": [{"type": "TIMESTAMP"}]},
    ],
}


class Output:
    """An output of a config, with its writer, which takes one task's messages at a time."""

    def __init__(self, directory: Path, fields: str) -> None:
        text = (
            f"output:\n  iceberg:\n    catalog: {{url: 'sqlite:///{directory}/catalog.db', "
            f"warehouse: '{directory}/lake'}}\n    namespace: demo\n    table: rows\n"
        )
        text += "".join(f"    {line}\n" for line in fields.splitlines())
        self.directory = directory
        self.plan = make_plan(parse_config(text, "a.yaml"))
        self.writers = make_writers(self.plan, directory, _NO_STDOUT, stream=lambda: "s")
        self.batch = -1

    def write(self, *tasks: list[dict[str, Any]], **meta: Any) -> list[str]:
        """Write a micro-batch; return why messages were rejected."""
        self.batch += 1
        frames, why = [], []
        for number, rows in enumerate(tasks):
            ex = Execution(lambda: 0)
            stage = OutputStage(self.plan, 0, self.plan.output)
            batch = [Message.from_value(row, meta) for row in rows]
            for payload in stage.payloads([batch], 0, ex):
                frames.append(Frame(FrameKind.DATA, 0, number, 0, 0, payload.route, payload.body))
            why += [str(one.text) for one in ex.rejected]
        try:
            self.writers[0].write(self.batch, frames)
        except RefusedRoutesError as error:
            why += [text for _, text in error.refused]
        return why

    def table(self) -> Table:
        return open_catalog(self.directory).load_table("demo.rows")

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table().scan().to_arrow().to_pylist()
        return rows


_NO_STDOUT: Any = None


def problems_of(fields: str) -> list[str]:
    text = (
        "output:\n  iceberg:\n    catalog: {url: 'https://x.example', auth: {%s}}\n"
        "    namespace: demo\n    table: rows\n    %s\n"
    )
    auth, _, more = fields.partition("|")
    return [lint.message for lint in lint_text(text % (auth, more))]


def test_new_columns_get_the_types_of_the_schema_of_messages(tmp_path: Path) -> None:
    output = Output(tmp_path, "schema_evolution: { schema_metadata: schema }")
    row = {"more": 1, "inner": {"y": "a", "x": 1}, "n": 1, "times": ["2026-01-01T00:00:00Z"]}
    assert output.write([row], schema=SCHEMA) == []
    schema = output.table().schema().as_arrow()
    kinds = {field.name: str(field.type) for field in schema}
    assert kinds["n"] == "int32" and kinds["more"] == "int64"
    assert "absent" not in kinds and "x: float" in kinds["inner"] and "y: " in kinds["inner"]
    assert "timestamp[us, tz=UTC]" in kinds["times"]
    # The schema may be a text; a table that is there keeps its types.
    assert output.write([{"n": 2}], schema=json.dumps(SCHEMA)) == []
    [why] = output.write([{"n": 1 << 40}], schema=SCHEMA)
    assert "does not fit its column, int" in why
    [why] = output.write([{"n": 1}], schema={"type": "INT32"})
    assert why == "the schema in the metadata schema is no object with the type OBJECT"


def test_a_mapping_chooses_the_types_of_new_columns(tmp_path: Path) -> None:
    mapping = (
        'root = match { this.name == "at" => "timestamptz", '
        'this.name == "n" && this.inferred_type == "long" => "decimal(10,2)", '
        'this.name == "bad" => "number", '
        'this.name == "t" => if this.table == "rows" && this.message.n == 1 { "float" } }'
    )
    output = Output(tmp_path, f"schema_evolution: {{ new_column_type_mapping: '{mapping}' }}")
    rows = [{"at": "2026-01-01T00:00:00Z", "n": 1, "t": 2, "s": "x"}, {"n": 2, "bad": 1}]
    [why] = output.write(rows)
    assert "the mapping of types returned a type that is 'number'" in why
    kinds = [str(field.type) for field in output.table().schema().as_arrow()]
    assert kinds == ["timestamp[us, tz=UTC]", "decimal128(10, 2)", "float", "large_string"]
    assert len(output.rows()) == 1


def test_names_may_differ_by_case(tmp_path: Path) -> None:
    output = Output(
        tmp_path,
        "case_sensitive_columns: false\nrow_operation: '${! this.OP.or(\"upsert\") }'\n"
        "identifier_fields: [Id]",
    )
    rows = [{"Id": 1, "V": {"A": 1}}, {"ID": 2, "v": {"A": 2}}, {"id": 3, "ID": 3}]
    [why] = output.write(rows)
    assert "has two fields for the column" in why
    # Another task of the same micro-batch has other names for columns that are new.
    assert output.write([{"id": 4, "new": 1}], [{"ID": 5, "NEW": 2, "v": {"a": 5}}]) == []
    assert output.write([{"id": 1, "OP": "delete"}]) == []
    assert sorted(output.table().schema().column_names) == ["Id", "V", "V.A", "new"]
    assert sorted(output.rows(), key=lambda row: row["Id"]) == [
        {"Id": 2, "V": {"A": 2}, "new": None},
        {"Id": 4, "V": None, "new": 1},
        {"Id": 5, "V": {"A": 5}, "new": 2},
    ]


def test_the_processors_of_batching_run_on_its_batches(tmp_path: Path) -> None:
    output = Output(
        tmp_path,
        "batching: { count: 2, processors: [{ mapping: 'root.n = batch_size()' }] }\n"
        "max_in_flight: 1\nparquet: { string_encoding: plain }",
    )
    assert output.write([{"x": 1}]) == []
    assert output.rows() == [{"n": 1}]


def test_manifests_are_joined_and_old_snapshots_removed(tmp_path: Path) -> None:
    output = Output(tmp_path, "commit: { max_snapshot_age: 1ms }")
    assert output.write([{"n": 0}]) == []
    with output.table().transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "2"})
    for number in range(1, 4):
        assert output.write([{"n": number}]) == []
    table = output.table()
    assert len(table.inspect.manifests()) < 4
    assert len(table.metadata.snapshots) == 4
    # Another start looks for old ones again.
    output.writers = make_writers(output.plan, tmp_path, _NO_STDOUT, stream=lambda: "s")
    assert output.write([{"n": 4}]) == []
    table = output.table()
    assert len(table.metadata.snapshots) == 1
    assert sorted(row["n"] for row in output.rows()) == [0, 1, 2, 3, 4]
    (tmp_path / "single").mkdir()
    single = Output(tmp_path / "single", "commit: { manifest_merge_enabled: false }")
    for number in range(3):
        assert single.write([{"n": number}]) == []
    assert len(single.table().inspect.manifests()) == 3


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("aws_sigv4: {credentials: {role: arn}}", "is not assumed for requests to a catalog"),
        ("aws_sigv4: {credentials: {id: a}}", "id and secret need each other"),
        ("|commit: {max_retries: 0}", "expected 1 or more"),
        ("|schema_evolution: {enabled: false, schema_metadata: x}", "has no effect without"),
        ("|schema_evolution: {require_schema_metadata: true}", "needs the field schema_metadata"),
        ("|storage: {gcp_cloud_storage: {credentials_type: authorized_user}}", "has no effect"),
        (
            "|storage: {gcp_cloud_storage: {credentials_file: a, "
            'credentials_json: \'{"type": "service_account"}\'}}',
            "cannot stand beside credentials_file",
        ),
        ("|storage: {gcp_cloud_storage: {credentials_type: external_account}}", "is not one of"),
        ("|batching: {check: 'root = true', count: -1}", "expected 0"),
    ],
)
def test_fields_that_contradict_each_other_are_errors(fields: str, text: str) -> None:
    assert any(text in one for one in problems_of(fields)), problems_of(fields)


def test_all_fields_of_signatures_and_sockets_are_taken() -> None:
    fields = (
        "aws_sigv4: {region: eu-west-1, service: glue, endpoint: 'http://localhost:4566', "
        "tcp: {connect_timeout: 3s}, credentials: {id: a, secret: b, token: c}}"
    )
    assert problems_of(fields) == []
