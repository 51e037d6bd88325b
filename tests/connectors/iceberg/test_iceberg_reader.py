"""The input `iceberg`: tables that PyIceberg has written, while others change them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import EqualTo
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, UUIDType

from streamer.connectors.iceberg.file_rows import IcebergColumns, read_file_rows
from streamer.connectors.iceberg.snapshot_files import DeleteFile, IcebergDetail
from streamer.connectors.tables.file_columns import RowSelection
from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Limit
from tests.connectors.tables.table_reading import TableStream


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        # PyIceberg warns that a delete matched nothing.
        warnings.simplefilter("ignore")
        yield tmp_path


def catalog() -> Catalog:
    made = load_catalog("default", type="sql", uri="sqlite:///catalog.db", warehouse="./lake")
    made.create_namespace_if_not_exists("demo")
    return made


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"n": number} for number in numbers]


def numbers_table(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def make_table(*numbers: int) -> Table:
    table = catalog().create_table("demo.t", numbers_table().schema)
    for number in numbers:
        table.append(numbers_table(number))
    return table


def stream(more: str = "") -> TableStream:
    place = "catalog: {url: 'sqlite:///catalog.db', warehouse: ./lake}, namespace: demo, table: t"
    return TableStream(f"{{iceberg: {{{place}{more}}}}}")


@pytest.mark.parametrize("limit", [Limit(1), Limit(3), Limit(size=200), Limit()])
def test_all_rows_come_and_then_those_that_are_appended(limit: Limit) -> None:
    table = make_table()
    table.append(numbers_table(1, 2, 3, 4, 5))
    table.append(numbers_table(6))
    reading = stream()
    assert sorted(reading.read(limit), key=str) == rows(1, 2, 3, 4, 5, 6)
    assert reading.read(limit) == []
    table.append(numbers_table(7, 8))
    table.append(numbers_table(9))
    assert reading.read(limit, parts=3) == rows(7, 8, 9)


def test_values_have_the_types_of_messages() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    data = pa.table(
        {
            "decimal": pa.array([Decimal("12345678901234567890.123456789")], pa.decimal128(38, 9)),
            "at": pa.array([at], pa.timestamp("us", tz="UTC")),
            "local": pa.array([at.replace(tzinfo=None)], pa.timestamp("us")),
            "day": pa.array([date(1, 1, 1)], pa.date32()),
            "clock": pa.array([3_723_500_000], pa.time64("us")),
            "raw": pa.array([b"\xff\x00"], pa.binary()),
            "many": pa.array([[at, None]], pa.list_(pa.timestamp("us", tz="UTC"))),
            "deep": pa.array([{"a": {"b": [1, 2]}, "day": date(9999, 12, 31)}]),
            "map": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())),
            "none": pa.array([None], pa.string()),
            "big": pa.array([2**63 - 1], pa.int64()),
        }
    )
    catalog().create_table("demo.t", data.schema).append(data)
    assert stream().read() == [
        {
            "decimal": "12345678901234567890.123456789",
            "at": "2026-01-02T03:04:05.678901Z",
            "local": "2026-01-02T03:04:05.678901",
            "day": "0001-01-01",
            "clock": "01:02:03.5",
            "raw": b"\xff\x00",
            "many": ["2026-01-02T03:04:05.678901Z", None],
            "deep": {"a": {"b": [1, 2]}, "day": "9999-12-31"},
            "map": {"k": 1.5},
            "none": None,
            "big": 2**63 - 1,
        }
    ]


def test_a_uuid_is_a_text() -> None:
    schema = Schema(NestedField(1, "id", UUIDType()))
    one = UUID("0190163d-8694-739b-aea5-966c26f8ad91")
    table = catalog().create_table("demo.t", schema)
    table.append(pa.table({"id": pa.array([one.bytes], pa.binary(16)).cast(pa.uuid())}))
    assert stream().read() == [{"id": str(one)}]


def make_partitioned() -> Table:
    schema = Schema(NestedField(1, "k", StringType()), NestedField(2, "n", LongType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "k"),
        PartitionField(2, 1001, BucketTransform(4), "bucket"),
    )
    table = catalog().create_table("demo.t", schema, partition_spec=spec)
    table.append(pa.table({"k": ["a", "b"] * 4, "n": pa.array(range(8), pa.int64())}))
    table.append(pa.table({"k": ["a", None], "n": pa.array([8, 9], pa.int64())}))
    return table


def test_columns_and_conditions_choose_files_and_rows() -> None:
    make_partitioned()
    reading = stream(", columns: [n], where: [[k, '=', b], [n, in, [1, 3, 4, 9]]]")
    assert sorted(reading.read(), key=str) == rows(1, 3)
    assert stream(", where: [[k, '=', null]]").read() == [{"k": None, "n": 9}]
    with pytest.raises(StreamerError, match="columns has 'm'; the Iceberg table demo.t has the"):
        stream(", columns: [m]").open().probe()
    source = stream(", where: [[k, '=', null]]").open()
    start = source.initial_offset()
    pieces = source.split(start, source.latest_offset(start, 1, Limit()).offset, 1)
    assert len(pieces) == 1


def test_a_start_is_a_snapshot_or_a_time_or_now() -> None:
    table = make_table(0, 1, 2, 3)
    late = stream(", start_from: latest")
    assert late.read() == []
    third = table.history()[2]
    assert stream(f", start_from: '{third.snapshot_id}'").read() == rows(2, 3)
    at = datetime.fromtimestamp(table.history()[3].timestamp_ms / 1000, UTC).isoformat()
    assert stream(f", start_from: '{at}'").read()[-1:] == rows(3)
    table.append(numbers_table(4))
    assert late.read() == rows(4)
    with pytest.raises(StreamerError, match="start_from is 7; the Iceberg table demo.t has the"):
        stream(", start_from: '7'").open()


def test_a_table_that_is_made_later_is_read_from_its_first_snapshot() -> None:
    reading = stream()
    assert reading.read() == []
    assert not Path("catalog.db").exists()
    table = make_table()
    assert reading.read() == []
    table.append(numbers_table(1))
    table.append(numbers_table(2))
    assert reading.read() == rows(1, 2)


def test_an_input_that_reads_once_ends_with_the_snapshot_of_its_first_start() -> None:
    table = make_table(1, 2)
    reading = stream(", read_once: true")
    reading.open()
    table.append(numbers_table(3))
    assert sorted(reading.read(Limit(1)), key=str) == rows(1, 2)
    assert reading.offset is not None
    assert reading.open().latest_offset(reading.offset, 1, Limit()).is_ended


def test_columns_that_change_while_it_is_read_come_as_they_are_now() -> None:
    table = make_table(1)
    reading = stream()
    assert reading.read() == rows(1)
    with table.update_schema() as update:
        update.add_column("new", StringType())
    table.append(pa.table({"n": pa.array([2], pa.int64()), "new": ["x"]}))
    with table.update_schema() as update:
        update.rename_column("n", "number")
    table.append(
        pa.table({"number": pa.array([3], pa.int64()), "new": pa.array([None], pa.string())})
    )
    assert reading.read() == [{"n": 2, "new": "x"}, {"number": 3, "new": None}]
    whole = sorted(stream().read(), key=lambda row: row["number"])
    assert whole == [
        {"number": 1, "new": None},
        {"number": 2, "new": "x"},
        {"number": 3, "new": None},
    ]


class Compaction(_OverwriteFiles):
    """Writes rows into other files, which PyIceberg itself does not."""

    def _summary(self, snapshot_properties: Any = None) -> Summary:
        return Summary(Operation.REPLACE)


def compact(table: Table) -> None:
    """Write all rows into one new file."""
    with table.transaction() as transaction:
        producer = Compaction(Operation.REPLACE, transaction, table.io, snapshot_properties={})
        for task in table.scan().plan_files():
            producer.delete_data_file(task.file)
        for file in _dataframe_to_data_files(table.metadata, table.scan().to_arrow(), table.io):
            producer.append_data_file(file)
        producer.commit()


def test_a_compaction_while_it_is_read_changes_nothing() -> None:
    table = make_table(*range(6))
    reading = stream()
    source = reading.open()
    latest = source.latest_offset(source.initial_offset(), 1, Limit(2))
    reading.offset = latest.offset
    compact(table)
    table.refresh()
    table.append(numbers_table(6))
    assert len(reading.read()) == 5
    assert len(table.scan().to_arrow()) == 7


def test_changes_stop_or_are_left_out_or_come_as_rows() -> None:
    table = make_table()
    table.append(numbers_table(1, 2, 3))
    readings = {mode: stream(f", on_change: {mode}") for mode in ("stop", "skip", "rows")}
    for reading in readings.values():
        assert reading.read() == rows(1, 2, 3)
    table.delete(EqualTo("n", 2))
    table.append(numbers_table(4))
    with pytest.raises(StreamerError, match=r"\(overwrite\) changes or deletes rows, and this"):
        readings["stop"].read()
    assert readings["skip"].read() == rows(4)
    removed = [("delete", row) for row in rows(1, 2, 3)]
    kept = [("insert", row) for row in rows(1, 3, 4)]
    assert readings["rows"].read_operations() == removed + kept


def test_an_overwrite_that_removes_nothing_is_an_append() -> None:
    table = make_table(1)
    reading = stream()
    assert reading.read() == rows(1)
    table.overwrite(numbers_table(2), overwrite_filter=EqualTo("n", 99))
    assert reading.read() == rows(2)


def test_snapshots_that_have_expired_are_an_error_unless_they_were_read() -> None:
    empty = stream()
    assert empty.read() == []
    table = make_table(1, 2)
    reading = stream()
    behind = stream(f", start_from: '{table.history()[0].snapshot_id}'")
    behind.open()
    assert sorted(reading.read(), key=str) == rows(1, 2)
    table.maintenance.expire_snapshots().by_id(table.history()[0].snapshot_id).commit()
    table.append(numbers_table(3))
    assert reading.read() == rows(3)
    for one in (behind, empty):
        with pytest.raises(StreamerError, match="snapshots of the Iceberg table demo.t have exp"):
            one.read()


def test_a_table_that_was_rolled_back_is_an_error() -> None:
    table = make_table(1, 2)
    reading = stream()
    assert sorted(reading.read(), key=str) == rows(1, 2)
    table.manage_snapshots().rollback_to_snapshot(table.history()[0].snapshot_id).commit()
    table.append(numbers_table(3))
    with pytest.raises(StreamerError, match="was rolled back: snapshot"):
        reading.read()


def test_a_file_that_is_gone_is_an_error_with_the_remedy() -> None:
    make_table(1)
    source = stream().open()
    start = source.initial_offset()
    [piece] = source.split(start, source.latest_offset(start, 1, Limit()).offset, 1)
    Path(piece.file.path.removeprefix("file://")).unlink()
    with pytest.raises(StreamerError, match="is gone: its snapshot has expired"):
        list(source.read(piece, None))  # type: ignore[arg-type]


def test_rows_that_position_deletes_name_do_not_come() -> None:
    table = make_table()
    table.append(numbers_table(*range(10)))
    [task] = table.scan().plan_files()
    path = task.file.file_path
    deletes = pa.table({"file_path": [path, "other", path], "pos": pa.array([2, 3, 7], pa.int64())})
    parquet.write_table(deletes, "deletes.parquet")
    columns = IcebergColumns(table.schema(), None, 2, table.io)
    found = DeleteFile(str(Path("deletes.parquet").resolve()), "PARQUET")
    detail = IcebergDetail("PARQUET", {}, (found,))
    batches: list[Any] = list(read_file_rows(path, (1, 7), columns, detail, RowSelection()))
    assert [row["n"] for one in batches for row in one.to_pylist()] == [1, 3, 4, 5, 6]


def test_metadata_say_where_a_row_is_from() -> None:
    table = make_table(1)
    reading = stream()
    [[message]] = reading.batches()
    snapshot = table.history()[0].snapshot_id
    assert (message.meta["table"], message.meta["table_version"]) == ("demo.t", snapshot)
    assert message.meta["operation"] == "read"
    assert Path(message.meta["path"].removeprefix("file://")).exists()
