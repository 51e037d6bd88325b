"""A micro-batch that a table has and the checkpoint has not; without a JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamer.config import parse_config
from streamer.connectors.tables.table_client import TableCommit
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.dynamic_output_writer import DynamicOutputWriter
from streamer.engine.driver.table_commits import AheadWriter
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import Plan, make_plan
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.generations import (
    begin_discard,
    begin_generation,
    read_drain,
)
from streamer.spark.checkpoint.unfinished_batch import check_finished, find_table_ahead

FITS = {"input": "stdin", "window": "grid(1s)", "key": None, "shards": 2}


def make_table_plan(directory: Path, more: str = "") -> Plan:
    text = (
        "input: {stdin: {}}\n"
        "output: {broker: {pattern: fan_out, outputs: [stdout: {}, "
        f"delta: {{path: {directory}/a}}, delta: {{path: {directory}/b{more}}}]}}}}\n"
    )
    return make_plan(parse_config(text, "a.yaml"))


def note(checkpoint: Checkpoint, log: str, number: int) -> None:
    (checkpoint.spark / log).mkdir(parents=True, exist_ok=True)
    offset = {"data": {"pos": number}, "tick": 7, "start": "x", "ended": False, "time": 5}
    text = "\n".join(["v1", '{"batchTimestampMs":0}', json.dumps(offset)])
    (checkpoint.spark / log / str(number)).write_text(text)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Checkpoint]:
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.bind(FITS, {})
    for number in (0, 1):
        note(checkpoint, "offsets", number)
    note(checkpoint, "commits", 0)
    yield checkpoint
    checkpoint.close()


def commit(checkpoint: Checkpoint, plan: Plan, number: int) -> None:
    """Commit a micro-batch to the second table, as the writer does."""
    writer = make_writers(plan, checkpoint.directory, None, stream=lambda: checkpoint.identity)[-1]
    rows = pa.table({"n": [number]})
    batch = checkpoint.global_batch_number(number)
    writer._client.commit(TableCommit(writer._writer(), batch, rows))


def test_a_table_that_has_more_than_the_checkpoint_is_told(held, tmp_path) -> None:
    plan = make_table_plan(tmp_path)
    assert find_table_ahead(held, plan) == ""
    commit(held, plan, 0)
    assert find_table_ahead(held, plan) == ""
    commit(held, plan, 1)
    assert find_table_ahead(held, plan) == f"the Delta table {tmp_path}/b"
    with pytest.raises(StreamerError, match="Start the stream once, stop it, and move its"):
        check_finished(held, plan, "move its offsets")
    note(held, "commits", 1)
    assert find_table_ahead(held, plan) == ""


NESTED = {
    "broker": "broker: {pattern: fan_out, outputs: [{stdout: {}}, {broker: {outputs: [TABLE]}}]}",
    "switch": "switch: {cases: [{check: this.a, output: TABLE}, {output: {stdout: {}}}]}",
    "fallback": "fallback: [TABLE, {stdout: {}}]",
    "dynamic": "dynamic: {outputs: {a: {stdout: {}}, b: TABLE}}",
    "dynamic broker": "dynamic: {outputs: {a: {broker: {outputs: [TABLE, {stdout: {}}]}}}}",
    "messages name it": "ROUTED",
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_table_inside_of_another_output_is_known(held, tmp_path, text) -> None:
    table = f"delta: {{path: {tmp_path}/b}}"
    routed = f"delta: {{path: '{tmp_path}/${{! this.to }}'}}"
    output = text.replace("TABLE", f"{{{table}}}").replace("ROUTED", routed)
    plan = make_plan(parse_config(f"input: {{stdin: {{}}}}\noutput: {{{output}}}\n", "a.yaml"))
    assert find_table_ahead(held, plan) == ""
    writers = make_writers(plan, held.directory, None, stream=lambda: held.identity)
    [writer] = list_table_writers(writers)
    leaf = writer._output
    rows = [Message(b'{"n":1,"to":"b"}')]
    frames = [
        Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in leaf.encode(rows, Execution(lambda: 0))
    ]
    writer.write(held.global_batch_number(1), frames)
    assert find_table_ahead(held, plan) == f"the Delta table {tmp_path}/b"
    note(held, "commits", 1)
    assert find_table_ahead(held, plan) == ""


def list_table_writers(writers: Iterable[Any]) -> list[Any]:
    """Return the writers of tables among writers and those inside of them."""
    found: list[Any] = []
    for writer in writers:
        if isinstance(writer, DynamicOutputWriter):
            for output in writer.running().values():
                found += list_table_writers(output.writers.values())
        elif isinstance(writer, AheadWriter):
            found.append(writer)
    return found


def test_rows_that_are_replaced_by_key_may_come_again(held, tmp_path) -> None:
    plan = make_table_plan(tmp_path, ", mode: upsert, key: [n]")
    commit(held, plan, 1)
    assert find_table_ahead(held, plan) == ""


def test_a_table_that_cannot_be_reached_holds_nothing_up(held, tmp_path) -> None:
    plan = make_table_plan(tmp_path)
    commit(held, plan, 1)
    for log in (tmp_path / "b" / "_delta_log").iterdir():
        log.write_text("damaged")
    assert find_table_ahead(held, plan) == ""


def test_windows_are_dropped_once_the_micro_batch_in_hand_is_finished(held, tmp_path) -> None:
    plan, other = make_table_plan(tmp_path), {**FITS, "window": "grid(2s)"}
    commit(held, plan, 1)
    begin_discard(held, plan, other, keeps_input=True)
    drain = read_drain(held)
    assert drain is not None and drain.keeps_input and not drain.emits and held.generation == 0
    # What is left of it ends with the generation.
    begin_generation(held, other, keeps_input=True)
    assert read_drain(held) is None and held.generation == 1


@pytest.mark.parametrize("harm", ["another input", "no plan", "nothing written"])
def test_windows_are_dropped_at_once_otherwise(held, tmp_path, harm) -> None:
    plan = make_table_plan(tmp_path)
    if harm != "nothing written":
        commit(held, plan, 1)
    known = None if harm == "no plan" else plan
    begin_discard(held, known, FITS, keeps_input=harm != "another input", revision="7")
    assert read_drain(held) is None and held.generation == 1 and held.revision == "7"
