"""Data files that tasks write: each row once, whatever becomes of the task or the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table.sorting import NullOrder
from pyiceberg.transforms import DayTransform, IdentityTransform

from streamer.bloblang import compile_interpolation
from streamer.connectors.delta.data_files import make_statistics
from streamer.connectors.delta.delta_table import DeltaClient
from streamer.connectors.delta.delta_target import DeltaTarget
from streamer.connectors.iceberg.iceberg_table import (
    CatalogConnection,
    IcebergClient,
    WriteSettings,
)
from streamer.connectors.iceberg.partition_spec import parse_sort_order
from streamer.connectors.tables import task_rows
from streamer.connectors.tables.column_types import parse_column_type
from streamer.connectors.tables.routed_tables import OpenTables, RoutedTableOutput
from streamer.connectors.tables.table_client import (
    RefusedRowsError,
    TableCommit,
    TableUnavailableError,
)
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.connectors.tables.written_files import decode_files, names_files
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Message
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.routed_table_writer import RoutedTableWriter
from streamer.engine.driver.table_writer import TableWriter
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.sdk.output.protocols import encode_batch
from tests.connectors.tables.table_kinds import KINDS, TableKind, open_catalog

EX = Execution(lambda: 0)
COLUMNS = {"n": "bigint", "k": "string", "at": "timestamp", "x": "struct<y:array<double>>"}
TIME = "2026-01-01T00:00:00.123456Z"

with_each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture(autouse=True)
def _write_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_rows, "MIN_FILE_BYTES", 1)


def row_of(number: int, **more: Any) -> dict[str, Any]:
    return {"n": number, "k": f"a {number % 2}", "at": TIME, "x": {"y": [1.5]}, **more}


class Stream:
    """A stream that writes to a table; another one of the same name continues it."""

    def __init__(self, kind: TableKind, directory: Path, **make: Any) -> None:
        self.client = kind.make(directory, **make)
        declared = [(name, parse_column_type(text)) for name, text in COLUMNS.items()]
        self.output = TableOutput(self.client, pa.schema(declared), ColumnCache(), is_open=True)
        self.writer = TableWriter(self.output, lambda: "w")

    def frames(self, batch: int, *tasks: Sequence[dict[str, Any]]) -> list[Frame]:
        """Return the frames of tasks, each of which has some rows."""
        frames = []
        for number, rows in enumerate(tasks):
            task = self.output.begin_task(MicroBatch("s", batch, str(number)), shares_disk=True)
            assert task is not None
            routed, _ = encode_batch(task, [Message.from_value(row) for row in rows], EX)
            routed += task.finish()
            frames += [Frame(FrameKind.DATA, number, 0, 0, 0, *one) for one in routed]
        return frames


def files_of(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*.parquet")}


def paths_of(frames: Sequence[Frame]) -> set[str]:
    """Return the names of the files that frames name, all of which do."""
    assert all(names_files(frame.body) for frame in frames)
    return {Path(file.path).name for frame in frames for file in decode_files(frame.body)}


@with_each_kind
@pytest.mark.parametrize("partition_by", [[], ["k"]], ids=["whole", "partitions"])
def test_files_are_committed_once(
    kind: TableKind, partition_by: Sequence[str], tmp_path: Path
) -> None:
    stream = Stream(kind, tmp_path, partition_by=partition_by)
    # There is no table yet: the driver makes it.
    made = stream.frames(0, [row_of(0, k=None), row_of(1)])
    assert not any(names_files(frame.body) for frame in made)
    stream.writer.write(0, made)
    first = stream.frames(1, [row_of(2), row_of(3)], [row_of(4, k="ü/=%")])
    paths = paths_of(first)
    assert all(f"s-{1:010d}-" in name for name in paths)
    stream.writer.write(1, first)
    stream.writer.write(1, first)  # The answer to the commit was lost.
    assert paths <= files_of(tmp_path)
    # Another start: the same tasks run again, and their files are not needed.
    stream = Stream(kind, tmp_path, partition_by=partition_by)
    again = stream.frames(1, [row_of(2), row_of(3)], [row_of(4)])
    stream.writer.write(1, again)
    assert not paths_of(again) & files_of(tmp_path)
    # An attempt of a task that came to nothing leaves a file, and no row.
    lost = stream.frames(2, [row_of(5)])
    stream.writer.write(2, stream.frames(2, [row_of(5)]))
    assert paths_of(lost) < files_of(tmp_path)
    rows = kind.rows(tmp_path)
    assert [row["n"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["k"] for row in rows] == [None, "a 1", "a 0", "a 1", "ü/=%", "a 1"]
    assert {row["x"]["y"][0] for row in rows} == {1.5}
    assert {row["at"].microsecond for row in rows} == {123456}
    [newest, *_] = stream.client.read_commits(1)
    assert (newest.rows, newest.files, newest.writer, newest.batch) == (1, 1, "w", 2)


@with_each_kind
def test_a_file_for_a_table_that_has_changed_is_read_back(kind: TableKind, tmp_path: Path) -> None:
    stream = Stream(kind, tmp_path, partition_by=["k"])
    stream.writer.write(0, stream.frames(0, [row_of(0)]))
    before = stream.frames(1, [row_of(1)], [row_of(2)])
    other = Stream(kind, tmp_path)
    other.writer = TableWriter(other.output, lambda: "other")
    other.writer.write(0, other.frames(0, [row_of(3, new="a")]))
    stream.writer.write(1, before)
    assert [(row["n"], row["new"]) for row in kind.rows(tmp_path)] == [
        *((0, None), (1, None), (2, None)),
        (3, "a"),
    ]
    assert not paths_of(before) & files_of(tmp_path)


@with_each_kind
def test_files_and_rows_are_one_commit(kind: TableKind, tmp_path: Path) -> None:
    stream = Stream(kind, tmp_path)
    stream.writer.write(0, stream.frames(0, [row_of(0)]))
    version = stream.client.read_commits(1)[0].version
    # One task has a new column, and another one a value that fits no column.
    files = stream.frames(1, [row_of(1), row_of(2, n="no number")])
    rows = stream.frames(1, [row_of(3, new="a")])
    bad = rows[0]._replace(body=b'{"n": "no number either"}')
    with pytest.raises(RefusedRoutesError) as error:
        stream.writer.write(1, [*files, *rows, bad])
    assert [frame.body for frame, _ in error.value.refused] == [bad.body]
    assert paths_of(files) <= files_of(tmp_path)
    assert not names_files(rows[0].body)
    assert [(row["n"], row["new"]) for row in kind.rows(tmp_path)] == [
        (0, None),
        (1, None),
        (3, "a"),
    ]
    commits = stream.client.read_commits(5)
    mine = [one for one in commits if one.batch == 1]
    assert len(mine) == 1 and mine[0].rows == 2 and mine[0].version != version


@with_each_kind
def test_the_driver_writes_rows_that_workers_cannot(
    kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(kind, tmp_path, partition_by=["k"])
    stream.writer.write(0, stream.frames(0, [row_of(0)]))
    task = stream.output.begin_task(MicroBatch("s", 1, "0"), shares_disk=False)
    assert task is not None
    task.encode([Message.from_value(row_of(1))], EX)
    [(_, body)] = task.finish()
    assert not names_files(body)
    # Few rows, and rows of many partitions: a file of each would be small.
    for least in (1 << 20, 100):
        monkeypatch.setattr(task_rows, "MIN_FILE_BYTES", least)
        [frame] = stream.frames(1, [row_of(number, k=str(number)) for number in range(20)])
        assert not names_files(frame.body)
    monkeypatch.setattr(task_rows, "MIN_FILE_BYTES", 1)
    writer = stream.client.open_file_writer()
    assert writer is not None

    def fail(*_: Any) -> Any:
        raise TableUnavailableError("is away")

    monkeypatch.setattr(type(writer), "write", fail)
    [frame] = stream.frames(1, [row_of(1)])
    monkeypatch.undo()
    stream.writer.write(1, [frame])
    assert [row["n"] for row in kind.rows(tmp_path)] == [0, 1]


def test_many_rows_of_a_task_are_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(KINDS[0], tmp_path)
    stream.writer.write(0, stream.frames(0, [row_of(0)]))
    monkeypatch.setattr(task_rows, "MAX_PENDING_BYTES", 1)
    task = stream.output.begin_task(MicroBatch("s", 1, "0"), shares_disk=True)
    assert task is not None
    bodies = [task.encode([Message.from_value(row_of(number))], EX) for number in (1, 2)]
    assert [len(one) for one in bodies] == [1, 1]
    assert task.finish() == []


def test_each_of_the_tables_that_messages_name_gets_files(tmp_path: Path) -> None:
    def open_table(place: str, cache: ColumnCache) -> TableOutput:
        client = DeltaClient(place, {})
        return TableOutput(client, pa.schema([]), cache, is_open=True)

    target = DeltaTarget(compile_interpolation(f"{tmp_path}/${{! this.k }}"), open_table)
    output = RoutedTableOutput(target, OpenTables())
    writer = RoutedTableWriter(output, lambda: "w", tmp_path / "journal")
    for batch in range(2):
        task = output.begin_task(MicroBatch("s", batch, "0"), shares_disk=True)
        rows: list[Any] = [{"n": batch, "k": "a"}, {"n": batch, "k": "b"}, {"k": ".."}]
        routed, error = encode_batch(task, [Message.from_value(row) for row in rows], EX)
        assert error is not None and list(error.errors) == [2]
        routed += task.finish()
        assert [names_files(body) for _, body in routed] == [batch > 0] * 2
        frames = [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in routed]
        writer.write(batch, frames)
    for place in "ab":
        read = DeltaTable(tmp_path / place).to_pyarrow_table().sort_by("n").to_pylist()
        assert read == [{"n": 0, "k": place}, {"n": 1, "k": place}]


def test_a_table_with_constraints_gets_no_files_of_workers(tmp_path: Path) -> None:
    stream = Stream(KINDS[0], tmp_path)
    stream.writer.write(0, stream.frames(0, [row_of(0)]))
    early = stream.frames(1, [row_of(-1), row_of(1)])
    DeltaTable(tmp_path / "table").alter.add_constraint({"positive": "n >= 0"})
    with pytest.raises(RefusedRoutesError, match="positive"):
        stream.writer.write(1, early)
    stream = Stream(KINDS[0], tmp_path)
    [frame] = stream.frames(2, [row_of(2)])
    assert not names_files(frame.body)
    stream.writer.write(2, [frame])
    assert [row["n"] for row in KINDS[0].rows(tmp_path)] == [0, 1, 2]


def test_statistics_hold_the_values() -> None:
    made = make_statistics(
        pa.table(
            {
                "at": pa.array([1_234_567, 1, None], pa.timestamp("us", "UTC")),
                "day": pa.array([1, 2, None], pa.date32()),
                "long": ["a" * 65, "b", None],
                "nan": [float("nan"), 1.0, None],
                "n": [1.5, -2.0, None],
                "none": pa.nulls(3, pa.string()),
                "objects": [{"x": 1}, None, None],
            }
        )
    )
    assert made["minValues"] == {"at": "1970-01-01T00:00:00.000Z", "day": "1970-01-02", "n": -2.0}
    assert made["maxValues"] == {"at": "1970-01-01T00:00:01.235Z", "day": "1970-01-03", "n": 1.5}
    names = ("at", "day", "long", "nan", "n")
    assert made["nullCount"] == {**dict.fromkeys(names, 1), "none": 3}


def test_files_have_the_sort_order_of_their_table(tmp_path: Path) -> None:
    stream = Stream(KINDS[1], tmp_path)
    stream.writer.write(0, stream.frames(0, [row_of(0)]))
    table = open_catalog(tmp_path).load_table("demo.rows")
    with table.update_sort_order() as order:
        order.desc("at", DayTransform(), NullOrder.NULLS_LAST)
        order.asc("k", IdentityTransform(), NullOrder.NULLS_FIRST)
    days = ["2026-01-01", "2026-01-03", None, "2026-01-03", "2026-01-02"]
    times = [None if day is None else f"{day}T0{at}:00:00Z" for at, day in enumerate(days)]
    keys = ["a", "b", "c", None, "d"]
    rows = [row_of(at, at=times[at], k=keys[at]) for at in range(5)]
    stream = Stream(KINDS[1], tmp_path)
    frames = stream.frames(1, rows)
    assert paths_of(frames)
    stream.writer.write(1, frames)  # By a worker.
    stream.writer.write(2, [_as_rows(stream, frames[0])])  # By the driver.
    table.refresh()
    assert table.metadata.default_sort_order_id == 1
    for task in table.scan().plan_files():
        read = table.io.new_input(task.file.file_path)
        with read.open() as source:
            numbers = pa.parquet.read_table(source).column("n").to_pylist()
        assert numbers in ([0], [3, 1, 4, 0, 2])


def test_a_new_table_gets_the_sort_order_of_the_config(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    settings = WriteSettings(sort_by=parse_sort_order("(k desc, day(at))"))
    client = IcebergClient(
        CatalogConnection(catalog.name, catalog.properties), "demo", "rows", settings
    )
    stream = Stream(KINDS[1], tmp_path)
    stream.writer = TableWriter(
        TableOutput(client, pa.schema([]), ColumnCache(), is_open=True), lambda: "w"
    )
    stream.writer.write(0, stream.frames(0, [row_of(at, k=str(at)) for at in range(3)]))
    table = catalog.load_table("demo.rows")
    assert [str(one) for one in table.sort_order().fields] == [
        "2 DESC NULLS LAST",
        "day(3) ASC NULLS FIRST",
    ]
    assert [row["k"] for row in table.scan().to_arrow().to_pylist()] == ["2", "1", "0"]
    with pytest.raises(RefusedRowsError, match="cannot be made with a sort order by k, at"):
        client = IcebergClient(
            CatalogConnection(catalog.name, catalog.properties), "demo", "others", settings
        )
        client.commit(TableCommit("w", 0, pa.table({"n": [1]})))


def _as_rows(stream: Stream, frame: Frame) -> Frame:
    from streamer.connectors.tables.arrow_streams import encode_table

    [file] = decode_files(frame.body)
    return frame._replace(body=encode_table(stream.client.read_file(file).take([4, 2, 0, 1, 3])))
