"""Writers of tables: each micro-batch once, whatever fails when, and rows that fit alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamer.bloblang import compile_interpolation
from streamer.connectors.files.message_path import MessagePath
from streamer.connectors.tables.column_types import parse_column_type
from streamer.connectors.tables.parquet_output import ParquetOutput
from streamer.connectors.tables.table_client import (
    TableClient,
    TableCommit,
    TableUnavailableError,
)
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import ALL
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.parquet_writer import ParquetWriter
from streamer.engine.driver.table_writer import TableWriter
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.sdk.output.protocols import Encoder, encode_batch
from streamer.spark.checkpoint.checkpoint import Checkpoint
from tests.connectors.tables.table_kinds import KINDS, TableKind

EX = Execution(lambda: 0)


def schema_of(**kinds: str) -> pa.Schema:
    return pa.schema([(name, parse_column_type(kind)) for name, kind in kinds.items()])


def frames_of(output: Encoder, *batches: Sequence[Any]) -> list[Frame]:
    """Return the frames of tasks, each of which has one batch; what does not fit is left out."""
    frames = []
    for order, batch in enumerate(batches):
        messages = [Message.from_value(one, {"window_emit": "final"}) for one in batch]
        routed, _ = encode_batch(output, messages, EX)
        frames += [Frame(FrameKind.DATA, order, 0, 0, 0, *one) for one in routed]
    return frames


class FailingClient:
    """A table whose commits fail: before anything is done, or when only the answer is lost."""

    def __init__(self, client: TableClient) -> None:
        self._client = client
        self.fails_before = self.fails_after = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def commit(self, commit: TableCommit) -> None:
        if self.fails_before:
            self.fails_before -= 1
            raise TableUnavailableError("is away")
        self._client.commit(commit)
        if self.fails_after:
            self.fails_after -= 1
            raise TableUnavailableError("no answer")


def open_table(
    kind: TableKind,
    directory: Path,
    *,
    keys: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    is_open: bool = True,
    **columns: str,
) -> tuple[FailingClient, TableOutput, TableWriter]:
    """Return a table, its output and its writer, as a start of the program makes them."""
    client = FailingClient(kind.make(directory, keys=keys, partition_by=partition_by))
    output = TableOutput(client, schema_of(**columns), ColumnCache(), is_open=is_open, keys=keys)
    return client, output, TableWriter(output, lambda: "w")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
class TestTables:
    def test_a_micro_batch_is_committed_once(self, kind: TableKind, tmp_path: Path) -> None:
        client, output, writer = open_table(kind, tmp_path, n="double")
        first = frames_of(output, [{"n": 1}, {"n": 2, "x": "a"}], [{"n": 3}])
        client.fails_before = 1
        with pytest.raises(TableUnavailableError):
            writer.write(0, first)
        client.fails_after = 1
        with pytest.raises(TableUnavailableError):
            writer.write(0, first)
        writer.write(0, first)
        writer.write(1, [])
        # Another start: Spark hands the micro-batch on again that it has not noted as done.
        client, output, writer = open_table(kind, tmp_path, n="double")
        writer.write(2, frames_of(output, [{"n": 4}]))
        client, output, writer = open_table(kind, tmp_path, n="double")
        writer.write(2, frames_of(output, [{"n": 4}]))
        writer.write(3, frames_of(output, [{"n": 5.5}]))
        assert [row["n"] for row in kind.rows(tmp_path)] == [1, 2, 3, 4, 5.5]

    def test_rows_that_do_not_fit_are_refused_alone(self, kind: TableKind, tmp_path: Path) -> None:
        _, output, writer = open_table(kind, tmp_path)
        # Two tasks that know no column yet: the first decides.
        frames = frames_of(output, [{"n": 1, "x": "a"}], [{"n": 2, "x": 7}, {"n": 3}])
        with pytest.raises(RefusedRoutesError) as error:
            writer.write(0, frames)
        assert [row["n"] for row in kind.rows(tmp_path)] == [1, 3]
        [(frame, why)] = error.value.refused
        assert json.loads(frame.body) == {"n": 2, "x": 7}
        assert why == "the field x is 7, which does not fit its column, string"
        # It comes again as it is, and is refused again, and others are written.
        with pytest.raises(RefusedRoutesError):
            writer.write(1, [frame, *frames_of(output, [{"n": 4}])])
        assert [row["n"] for row in kind.rows(tmp_path)] == [1, 3, 4]

    @pytest.mark.parametrize("keys", [[], ["n"]], ids=["append", "upsert"])
    def test_rows_without_a_column_of_the_partitions_are_refused(
        self, kind: TableKind, keys: Sequence[str], tmp_path: Path
    ) -> None:
        _, output, writer = open_table(kind, tmp_path, keys=keys, partition_by=["day"])
        with pytest.raises(RefusedRoutesError) as error:
            writer.write(0, frames_of(output, [{"n": 1}], [{"n": 2}]))
        assert [json.loads(frame.body) for frame, _ in error.value.refused] == [{"n": 1}, {"n": 2}]
        why = {reason for _, reason in error.value.refused}
        assert len(why) == 1 and "cannot be made with partitions by day: " in why.pop()
        with pytest.raises(RefusedRoutesError, match="and a partition has one value|transform"):
            writer.write(1, frames_of(output, [{"n": 3, "day": {"x": 1}}]))
        # One that has it makes the table; after that, rows without it have null there.
        writer.write(2, frames_of(output, [{"n": 4, "day": "a"}, {"n": 5}]))
        writer.write(3, frames_of(output, [{"n": 6}]))
        assert [(row["n"], row["day"]) for row in kind.rows(tmp_path)] == [
            (4, "a"),
            (5, None),
            (6, None),
        ]

    def test_the_newest_row_of_a_key_stays(self, kind: TableKind, tmp_path: Path) -> None:
        _, output, writer = open_table(kind, tmp_path, keys=["n"])
        writer.write(0, frames_of(output, [{"n": 1, "v": 1}, {"n": 1, "v": 2}], [{"n": 2, "v": 1}]))
        writer.write(1, frames_of(output, [{"n": 2, "v": 5}], [{"n": 3, "v": 1}, {"n": 2, "v": 6}]))
        for _ in range(2):  # An older checkpoint, which writes rows that are there already.
            _, output, writer = open_table(kind, tmp_path, keys=["n"])
            writer.write(1, frames_of(output, [{"n": 2, "v": 6}], [{"n": 3, "v": 1}]))
        assert kind.rows(tmp_path) == [{"n": 1, "v": 2}, {"n": 2, "v": 6}, {"n": 3, "v": 1}]

    def test_a_checkpoint_that_is_older_than_the_table_is_told(
        self, kind: TableKind, tmp_path: Path
    ) -> None:
        _, output, writer = open_table(kind, tmp_path)
        for batch in range(3):
            writer.write(batch, frames_of(output, [{"n": batch}]))
        _, output, writer = open_table(kind, tmp_path)
        with pytest.raises(StreamerError, match="up to 2, and the checkpoint goes on with 1"):
            writer.write(1, frames_of(output, [{"n": 7}]))
        assert len(kind.rows(tmp_path)) == 3

    def test_a_closed_table_is_waited_for_and_not_changed(
        self, kind: TableKind, tmp_path: Path
    ) -> None:
        _, output, writer = open_table(kind, tmp_path, is_open=False)
        frames = frames_of(output, [{"n": 1}])
        with pytest.raises(TableUnavailableError, match="is not there, and schema_evolution"):
            writer.write(0, frames)
        kind.make(tmp_path).commit(TableCommit("other", 0, pa.table({"n": [0]})))
        writer.write(0, frames)
        _, output, writer = open_table(kind, tmp_path, is_open=False)
        messages = [Message(b'{"n":2,"x":1}')]
        _, error = encode_batch(output, messages, EX)
        assert error is not None
        assert "the field x is no column of the table, which has n" in error.errors[0]
        assert [row["n"] for row in kind.rows(tmp_path)] == [0, 1]

    def test_a_table_that_nobody_can_look_at_is_judged_by_the_driver(
        self, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client, output, writer = open_table(kind, tmp_path)
        writer.write(0, frames_of(output, [{"n": 1}]))
        _, fresh, _ = open_table(kind, tmp_path)

        def fail() -> pa.Schema:
            raise TableUnavailableError("is away")

        monkeypatch.setattr(fresh.client, "load_columns", fail, raising=False)
        with pytest.raises(RefusedRoutesError):
            writer.write(1, frames_of(fresh, [{"n": "text"}, {"n": 2}]))
        assert [row["n"] for row in kind.rows(tmp_path)] == [1]


class TestParquet:
    def open(
        self, directory: Path, name: str = "w", **options: Any
    ) -> tuple[ParquetOutput, ParquetWriter]:
        path = MessagePath(
            compile_interpolation(f"{directory}/rows/k=${{! this.k }}"), is_directory=True
        )
        output = ParquetOutput(path, schema_of(v="double"), **options)
        journal = directory / "files.json"
        return output, ParquetWriter(output, journal, lambda: name, ALL)

    def read(self, directory: Path) -> list[tuple[str, Any]]:
        rows = []
        for path in sorted((directory / "rows").rglob("*")):
            if path.is_file() and path.suffix == ".parquet":
                rows += [
                    (path.parent.name, row["v"]) for row in pq.ParquetFile(path).read().to_pylist()
                ]
        return sorted(rows)

    def test_a_micro_batch_that_comes_again_replaces_its_files(self, tmp_path: Path) -> None:
        output, writer = self.open(tmp_path)
        first = [{"k": "a", "v": 1}, {"k": "b", "v": 2}]
        writer.write(0, frames_of(output, first, [{"k": "a", "v": 3}]))
        writer.write(0, frames_of(output, first, [{"k": "a", "v": 3}]))
        output, writer = self.open(tmp_path, max_file_rows=1)
        # The same rows cut in another way, and one directory less: nothing of before is left.
        writer.write(0, frames_of(output, [{"k": "a", "v": 1}], [{"k": "a", "v": 3}]))
        writer.write(1, frames_of(output, [{"k": "c", "v": 4.5}]))
        assert self.read(tmp_path) == [("k=a", 1.0), ("k=a", 3.0), ("k=c", 4.5)]
        assert len(list((tmp_path / "rows" / "k=a").iterdir())) == 2

    def test_a_crash_at_each_step_leaves_each_row_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Crash(BaseException):
            """The end of the program."""

        steps = 0
        for module, name in (("os", "replace"), ("pyarrow.parquet", "write_table")):
            original = getattr(__import__(module, fromlist=["_"]), name)

            def count(*given: Any, original: Any = original, **named: Any) -> Any:
                nonlocal steps
                steps -= 1
                if steps == 0:
                    raise Crash
                return original(*given, **named)

            monkeypatch.setattr(f"{module}.{name}", count)
        rows = [{"k": "abc"[number % 3], "v": number} for number in range(6)]
        for last in range(1, 8):
            output, writer = self.open(tmp_path)
            steps = last
            try:
                writer.write(last, frames_of(output, rows))
            except Crash:
                steps = 0
                output, writer = self.open(tmp_path)
                writer.write(last, frames_of(output, rows))
        assert len(self.read(tmp_path)) == 7 * 6
        assert not list(tmp_path.rglob("*.tmp"))

    def test_columns_keep_their_types_over_starts(self, tmp_path: Path) -> None:
        output, writer = self.open(tmp_path)
        writer.write(0, frames_of(output, [{"k": "a", "v": 1, "n": 1}]))
        output, writer = self.open(tmp_path)
        with pytest.raises(RefusedRoutesError) as error:
            writer.write(1, frames_of(output, [{"k": "a", "v": 2, "n": 1.5}, {"k": "b", "v": 3}]))
        assert [why for _, why in error.value.refused] == [
            "the field n is 1.5, which does not fit its column, bigint"
        ]
        assert self.read(tmp_path) == [("k=a", 1.0), ("k=b", 3.0)]

    def test_a_new_beginning_leaves_the_files_of_the_run_before(self, tmp_path: Path) -> None:
        """Micro-batches are numbered anew: the first one is no replay of the one before."""
        checkpoint = Checkpoint(tmp_path)
        output, writer = self.open(tmp_path)
        writer.write(0, frames_of(output, [{"k": "a", "v": 1, "n": 1}]))
        checkpoint.write_record({"finished": True})
        assert checkpoint.clear_finished_run()
        output, writer = self.open(tmp_path, "again")
        writer.write(0, frames_of(output, [{"k": "a", "v": 2, "n": 2.5}]))
        assert self.read(tmp_path) == [("k=a", 1.0), ("k=a", 2.0)]

    def test_a_record_that_is_damaged_is_told(self, tmp_path: Path) -> None:
        output, writer = self.open(tmp_path)
        writer.write(0, frames_of(output, [{"k": "a", "v": 1}]))
        record = tmp_path / "files.json"
        record.write_text(record.read_text().replace("000.parquet", "001.parquet"))
        with pytest.raises(StreamerError, match="is damaged"):
            self.open(tmp_path)

    def test_a_directory_that_cannot_be_is_refused_alone(self, tmp_path: Path) -> None:
        output, writer = self.open(tmp_path)
        (tmp_path / "rows").mkdir()
        (tmp_path / "rows" / "k=b").write_text("a file")
        with pytest.raises(RefusedRoutesError) as error:
            writer.write(0, frames_of(output, [{"k": "a", "v": 1}, {"k": "b", "v": 2}]))
        assert "cannot write to the directory" in error.value.refused[0][1]
        assert self.read(tmp_path) == [("k=a", 1.0)]

    def test_a_directory_is_marked_when_its_window_has_closed(self, tmp_path: Path) -> None:
        output, writer = self.open(tmp_path, success_file="_SUCCESS")
        writer.write(0, frames_of(output, [{"k": "a", "v": 1}], [{"k": "a", "v": 2}]))
        assert (tmp_path / "rows" / "k=a" / "_SUCCESS").read_bytes() == b""
        assert self.read(tmp_path) == [("k=a", 1.0), ("k=a", 2.0)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("keys", [(), ("n",)], ids=["append", "upsert"])
def test_commits_are_counted_once(kind: TableKind, keys: Sequence[str], tmp_path: Path) -> None:
    client, output, _ = open_table(kind, tmp_path, keys=keys)
    writer = TableWriter(output, lambda: "me")
    writer.write(0, frames_of(output, [{"n": 1}, {"n": 2}]))
    counts = writer.take_counts(0)
    sizes = [one.size for one in client.read_commits(9)]
    assert counts["output_commit_rows_total"] == 2
    assert counts["output_commits_total"] >= counts["output_commit_files_total"] == 1
    assert counts["output_commit_bytes_total"] == sum(sizes) > 0
    assert not any(writer.take_counts(0).values())
    client.fails_before = client.fails_after = 1
    frames = frames_of(output, [{"n": 3}])
    for _ in range(2):
        with pytest.raises(TableUnavailableError):
            writer.write(1, frames)
    writer.write(1, frames)
    counts = writer.take_counts(1)
    assert (counts["output_commit_retries_total"], counts["output_commit_rows_total"]) == (
        2,
        2 if keys else 1,
    )
    TableWriter(output, lambda: "other").write(0, frames_of(output, [{"n": 4}]))
    assert not any(writer.take_counts(2).values())


def test_files_of_parquet_are_counted_once(tmp_path: Path) -> None:
    output = ParquetOutput(
        MessagePath(compile_interpolation(f"{tmp_path}/${{! this.k }}"), "", is_directory=True),
        pa.schema([]),
        compression="none",
        max_file_rows=2,
        success_file="",
    )
    journal = tmp_path / "journal" / "files.json"
    journal.parent.mkdir()
    writer = ParquetWriter(output, journal, lambda: "me", ALL)
    writer.write(0, frames_of(output, [{"k": "a"}, {"k": "b"}, {"k": "a"}, {"k": "a"}]))
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert writer.take_counts(0) == {
        "output_commits_total": 1,
        "output_commit_files_total": 3,
        "output_commit_rows_total": 4,
        "output_commit_bytes_total": size,
    }
    assert writer.take_counts(0) == {}
