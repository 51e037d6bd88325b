"""Other programs that change a table between the look at it and the commit: both are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from streamer.connectors.tables.table_client import TableClient, TableCommit
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.table_writer import TableWriter
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.sdk.output.protocols import encode_batch
from tests.connectors.tables.table_kinds import KINDS, TableKind, open_catalog

pytestmark = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


class Writing:
    """A writer of a table, in whose first commit another program is faster."""

    def __init__(
        self,
        client: TableClient,
        rival: Callable[[], object] | None = None,
        name: str = "w",
    ) -> None:
        self._rival = rival
        original = client._open  # type: ignore[attr-defined]

        def open_and_wait() -> Any:
            table = original()
            if self._is_committing and (rival := self._rival):
                self._rival = None
                rival()
            return table

        self._is_committing = False
        client._open = open_and_wait  # type: ignore[attr-defined]
        self._commit = client.commit
        client.commit = self.commit  # type: ignore[method-assign]
        keys = client._keys  # type: ignore[attr-defined]
        self.output = TableOutput(client, pa.schema([]), ColumnCache(), is_open=True, keys=keys)
        self.writer = TableWriter(self.output, lambda: name)

    def commit(self, commit: TableCommit) -> None:
        self._is_committing = True
        try:
            self._commit(commit)
        finally:
            self._is_committing = False

    def write(self, batch: int, *rows: dict[str, Any]) -> None:
        routed, refused = encode_batch(
            self.output, [Message.from_value(row) for row in rows], Execution(lambda: 0)
        )
        assert not refused
        self.writer.write(batch, [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in routed])


@pytest.mark.parametrize("keys", [[], ["n"]], ids=["append", "upsert"])
@pytest.mark.parametrize(
    ("before", "rival", "mine", "after"),
    [
        ([], {"n": 2, "x": "b"}, {"n": 1, "x": "a"}, {1: {"x": "a"}, 2: {"x": "b"}}),
        ([{"n": 0}], {"n": 2}, {"n": 1}, {0: {}, 1: {}, 2: {}}),
        (
            [{"n": 0}],
            {"n": 2, "y": 5},
            {"n": 1},
            {0: {"y": None}, 1: {"y": None}, 2: {"y": 5}},
        ),
        (
            [{"n": 0}],
            {"n": 2, "y": 5},
            {"n": 1, "y": 6, "z": "c"},
            {0: {"y": None, "z": None}, 1: {"y": 6, "z": "c"}, 2: {"y": 5, "z": None}},
        ),
    ],
    ids=["makes the table", "adds rows", "adds a column", "adds the same column"],
)
def test_another_program_that_is_faster(
    kind: TableKind, tmp_path: Path, keys: list[str], before: Any, rival: Any, mine: Any, after: Any
) -> None:
    other = Writing(kind.make(tmp_path), name="other")
    if before:
        other.write(0, *before)
    writing = Writing(kind.make(tmp_path, keys=keys), lambda: other.write(1, rival))
    writing.write(0, mine)
    rows = {row.pop("n"): row for row in kind.rows(tmp_path)}
    assert rows == after
    assert writing.writer.conflicts <= 1
    writing.write(0, mine)
    assert len(kind.rows(tmp_path)) == len(after)


def test_a_column_that_another_program_gives_another_type(kind: TableKind, tmp_path: Path) -> None:
    """What does not fit any more is refused alone, whenever the table was changed."""
    other = Writing(kind.make(tmp_path), name="other")
    other.write(0, {"n": 0})
    writing = Writing(kind.make(tmp_path), lambda: other.write(1, {"n": 2, "y": "text"}))
    with pytest.raises(RefusedRoutesError) as error:
        writing.write(0, {"n": 1}, {"n": 3, "y": 7})
    assert [why for _, why in error.value.refused] == [
        "the field y is 7, which does not fit its column, string"
    ]
    assert kind.rows(tmp_path) == [
        {"n": 0, "y": None},
        {"n": 1, "y": None},
        {"n": 2, "y": "text"},
    ]
    assert writing.writer.conflicts == 1


def test_a_rule_that_another_program_adds(kind: TableKind, tmp_path: Path) -> None:
    if kind.name == "delta":
        upserting = Writing(kind.make(tmp_path, keys=["n"]))
        upserting.write(0, {"n": 0, "v": 1})
        DeltaTable(f"{tmp_path}/table").alter.add_constraint({"small": "v < 10"})
        with pytest.raises(RefusedRoutesError) as error:
            upserting.write(1, {"n": 0, "v": 2}, {"n": 0, "v": 11}, {"n": 1, "v": None})
        assert [(frame.body, why) for frame, why in error.value.refused] == [
            (b'{"n":0,"v":11}', "the table's constraint small forbids it: v < 10"),
            (b'{"n":1,"v":null}', "the table's constraint small forbids it: v < 10"),
        ]
        assert kind.rows(tmp_path) == [{"n": 0, "v": 2}]
        return
    writing = Writing(kind.make(tmp_path))
    writing.write(0, {"n": 0, "v": 1})
    table = open_catalog(tmp_path).load_table("demo.rows")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("v")
    writing.write(1, {"n": 1})
    assert kind.rows(tmp_path) == [{"n": 0}, {"n": 1}]


def test_many_writers_at_once(kind: TableKind, tmp_path: Path) -> None:
    each, errors = 6, []
    Writing(kind.make(tmp_path)).write(0, {"n": -1})

    def run(first: int) -> None:
        writing = Writing(kind.make(tmp_path), name=f"w{first}")
        try:
            for number in range(each):
                writing.write(number, {"n": first + number})
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(first,)) for first in range(0, 3 * each, each)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert [row["n"] for row in kind.rows(tmp_path)] == [-1, *range(3 * each)]
