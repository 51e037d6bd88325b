"""The newest commits of tables, as the API, the console and the command line show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamer.cli.remote_status import describe_stream
from streamer.config import parse_config
from streamer.connectors.tables.table_client import TableCommit
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.table_commits import describe_tables
from streamer.engine.driver.writers import Writer, make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import Plan, make_plan
from tests.connectors.tables.table_kinds import make_iceberg


def make_plan_of(directory: Path) -> Plan:
    iceberg = f"catalog: {{url: 'sqlite:///{directory}/catalog.db', warehouse: '{directory}/lake'}}"
    return make_plan(
        parse_config(
            "output: {broker: {outputs: [{file: {path: out}}, "
            f"{{label: lake, iceberg: {{{iceberg}, namespace: demo, table: rows}}}}]}}}}",
            "a.yaml",
        )
    )


def list_names(plan: Plan) -> list[str]:
    return [one.name for one in plan.driver_outputs]


def write(plan: Plan, writers: list[Writer], batch: int, *rows: dict[str, Any]) -> None:
    number = list_names(plan).index("iceberg")
    output = plan.context().build(plan.driver_outputs[number]).output
    encoded = output.encode([Message.from_value(row) for row in rows], Execution(lambda: 0))
    frames = [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in encoded]
    writers[number].write(batch, frames)
    writers[number].take_counts(batch)  # type: ignore[attr-defined]


def test_the_newest_commits_of_a_table_are_shown(tmp_path: Path) -> None:
    plan = make_plan_of(tmp_path)
    writers = make_writers(plan, tmp_path, None, stream=lambda: "s")  # type: ignore[arg-type]
    places = [(one.path, one.label) for one in plan.driver_outputs]
    assert describe_tables(writers, places) == []
    write(plan, writers, 0, {"n": 1}, {"n": 2})
    make_iceberg(tmp_path).commit(TableCommit("other", 7, pa.table({"n": [9]})))
    write(plan, writers, 1, {"n": 3})
    [shown] = json.loads(json.dumps(describe_tables(writers, places)))
    assert (shown["path"], shown["label"]) == (places[list_names(plan).index("iceberg")][0], "lake")
    assert shown["table"] == "the Iceberg table demo.rows"
    assert (shown["retries"], shown["conflicts"]) == (0, 0)
    assert [(one["rows"], one["files"], one["micro_batch"]) for one in shown["commits"]] == [
        (1, 1, 1),
        (1, 1, 7),
        (2, 1, 0),
    ]
    assert all(one["bytes"] > 0 and one["at"].endswith("Z") for one in shown["commits"])
    newest = shown["commits"][0]
    stream = {"reason": "", "condition": {"name": "running"}, "tables": [shown]}
    assert list(describe_stream(stream)) == [
        f"the Iceberg table demo.rows: append {newest['version']} at {newest['at']}, 1 rows, "
        f"1 files, {newest['bytes']:,} bytes; 0 retries and 0 conflicts in this run"
    ]
