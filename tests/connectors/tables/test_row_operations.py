"""Rows that are inserted, replaced and deleted as messages say; the oracle is a dictionary."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from streamer.bloblang import compile_interpolation
from streamer.config import parse_config
from streamer.connectors.tables.row_operations import (
    RowOperation,
    RowOperations,
    attach_operations,
    find_newest,
    take_operations,
)
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.table_writer import TableWriter
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.sdk.output.protocols import encode_batch
from tests.connectors.tables.table_kinds import KINDS, TableKind

EX = Execution(lambda: 0)
BY_MESSAGE = "${! @op }"


class Writing:
    """A writer of a table, whose messages have their operation in the metadata `op`."""

    def __init__(self, kind: TableKind, directory: Path, operation: str = BY_MESSAGE) -> None:
        client = kind.make(directory, keys=["k"])
        operations = RowOperations(compile_interpolation(operation))
        self.output = TableOutput(
            client, pa.schema([]), ColumnCache(), is_open=True, keys=["k"], operations=operations
        )
        self.writer = TableWriter(self.output, lambda: "w")

    def write(self, batch: int, *tasks: list[tuple[str, dict[str, Any]]]) -> list[str]:
        """Write a micro-batch; return why messages are rejected."""
        frames, reasons = [], []
        for task in tasks:
            messages = [Message.from_value(row, {"op": op}) for op, row in task]
            routed, error = encode_batch(self.output, messages, EX)
            reasons += [] if error is None else list(map(str, error.errors.values()))
            frames += [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in routed]
        self.writer.write(batch, frames)
        return reasons


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_last_operation_for_a_key_counts(kind: TableKind, tmp_path: Path) -> None:
    writing = Writing(kind, tmp_path)
    # There is nothing to delete, and no table is made for it.
    writing.write(0, [("delete", {"k": 1})])
    assert writing.output.client.load_columns() is None
    writing.write(
        1,
        [("upsert", {"k": 1, "v": "a"}), ("upsert", {"k": 2, "v": "b"}), ("delete", {"k": 1})],
        [("upsert", {"k": 3, "v": "c"}), ("", {"k": 4, "v": "d"}), ("insert", {"k": 4, "v": "e"})],
    )
    assert [(row["k"], row["v"]) for row in kind.rows(tmp_path, "v")] == [
        (2, "b"),
        (3, "c"),
        (4, "d"),
        (4, "e"),
    ]
    reasons = writing.write(
        2,
        [("delete", {"k": 2}), ("upsert", {"k": 2, "v": "B", "x": 1})],
        # Of a deleted row nothing but its key is looked at.
        [("delete", {"k": 4, "v": ["none of its type"], "further": 1}), ("delete", {"k": 9})],
        [("replace", {"k": 5}), ("delete", {"v": "c"}), ("upsert", {"k": None})],
    )
    assert kind.rows(tmp_path, "v") == [
        {"k": 2, "v": "B", "x": 1},
        {"k": 3, "v": "c", "x": None},
    ]
    assert len(reasons) == 3
    assert any("'replace'; expected insert, upsert, delete" in one for one in reasons)
    # The micro-batch comes again: rows that were inserted do not.
    Writing(kind, tmp_path).write(2, [("insert", {"k": 7, "v": "z"})])
    assert len(kind.rows(tmp_path, "v")) == 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_deletes_alone(kind: TableKind, tmp_path: Path) -> None:
    Writing(kind, tmp_path).write(0, [("insert", {"k": n, "v": n}) for n in (1, 2, 3)])
    deleting = Writing(kind, tmp_path, "delete")
    assert deleting.output.is_repeatable
    for _ in range(2):
        deleting.write(1, [("", {"k": 1}), ("", {"k": 3, "v": "other"})])
    assert kind.rows(tmp_path, "k") == [{"k": 2, "v": 2}]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_random_operations_leave_what_a_dictionary_has(kind: TableKind, tmp_path: Path) -> None:
    chance = random.Random(7)
    writing, wanted, number = Writing(kind, tmp_path), dict[int, int](), 0
    for batch in range(6):
        tasks = []
        for _ in range(2):
            task: list[tuple[str, dict[str, Any]]] = []
            for _ in range(8):
                number += 1
                key, op = chance.randrange(6), chance.choice(["upsert", "delete"])
                task.append((op, {"k": key, "v": number}))
                wanted.pop(key, None)
                if op == "upsert":
                    wanted[key] = number
            tasks.append(task)
        writing.write(batch, *tasks)
        if batch % 2:
            # Another start, whose first micro-batch is that one again.
            writing = Writing(kind, tmp_path)
            writing.write(batch, *tasks)
        assert {row["k"]: row["v"] for row in kind.rows(tmp_path, "k")} == wanted
        assert len(kind.rows(tmp_path, "k")) == len(wanted)


def test_a_forbidden_row_keeps_its_operation(tmp_path: Path) -> None:
    [kind] = [one for one in KINDS if one.name == "delta"]
    writing = Writing(kind, tmp_path)
    writing.write(0, [("insert", {"k": 1, "v": 1})])
    DeltaTable(f"{tmp_path}/table").alter.add_constraint({"small": "v < 10"})
    with pytest.raises(RefusedRoutesError) as error:
        writing.write(1, [("upsert", {"k": 1, "v": 20}), ("insert", {"k": 3, "v": 3})])
    [(frame, why)] = error.value.refused
    assert why == "the table's constraint small forbids it: v < 10"
    assert frame.route == "upsert"
    # The answer of the commit was lost: what was forbidden then is still refused.
    again = Writing(kind, tmp_path)
    with pytest.raises(RefusedRoutesError):
        again.write(1, [("insert", {"k": 3, "v": 3}), ("upsert", {"k": 1, "v": 20})])
    DeltaTable(f"{tmp_path}/table").alter.drop_constraint("small")
    writing.writer.write(2, [frame])
    assert kind.rows(tmp_path, "k") == [{"k": 1, "v": 20}, {"k": 3, "v": 3}]


def test_operations_travel_beside_rows() -> None:
    rows = pa.record_batch({"n": [1, 2, 3]})
    ops = [RowOperation.DELETE, RowOperation.INSERT, RowOperation.UPSERT]
    table = pa.Table.from_batches([attach_operations(rows, ops)])
    plain, operations = take_operations(table, RowOperation.INSERT)
    assert operations.to_pylist() == [2, 0, 1]
    assert plain.schema == rows.schema
    assert find_newest(plain, operations, ["n"]).to_pylist() == [0, 1, 2]
    same = pa.table({"n": [1, 1, 1, None], "#": [1, 2, 3, 4]})
    kinds = pa.array([1, 0, 2, 1], pa.int8())
    assert find_newest(same, kinds, ["n"]).to_pylist() == [1, 2, 3]
    assert find_newest(same, pa.array([0] * 4, pa.int8()), ["n"]) is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("mode: delete", "key is empty; mode delete needs the columns"),
        ("mode: remove", "mode"),
        ("key: [n]", "key has no effect without mode: upsert"),
    ],
)
def test_operations_that_cannot_be_are_refused(fields: str, text: str) -> None:
    with pytest.raises(StreamerError, match=text):
        parse_config(f"output: {{delta: {{path: ./t, {fields}}}}}", "a.yaml")
