"""The input `delta`: tables that delta-rs has written, while others change them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Limit
from tests.connectors.tables.table_reading import StateContext, TableStream


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def append(*numbers: int, **columns: Any) -> None:
    table = pa.table({"n": pa.array(numbers, pa.int64()), **columns})
    write_deltalake("t", table, mode="append", schema_mode="merge")


def stream(more: str = "", context: StateContext | None = None) -> TableStream:
    return TableStream(f"{{delta: {{path: ./t{more}}}}}", context or StateContext())


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"n": number} for number in numbers]


@pytest.mark.parametrize("limit", [Limit(1), Limit(3), Limit(size=200), Limit()])
def test_all_rows_come_and_then_those_that_are_appended(limit: Limit) -> None:
    append(1, 2, 3, 4, 5)
    append(6)
    reading = stream()
    assert reading.read(limit) == rows(1, 2, 3, 4, 5, 6)
    assert reading.read(limit) == []
    append(7, 8)
    append(9)
    assert reading.read(limit, parts=3) == rows(7, 8, 9)


def test_a_stream_that_begins_again_before_its_first_micro_batch_reads_the_same() -> None:
    append(1)
    reading = stream()
    begin = reading.open().initial_offset()
    append(2)
    assert reading.open().initial_offset() == begin
    assert reading.read() == rows(1, 2)


def test_values_have_the_types_of_messages() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    table = pa.table(
        {
            "decimal": pa.array([Decimal("12345678901234567890.123456789")], pa.decimal128(38, 9)),
            "at": pa.array([at], pa.timestamp("us", tz="UTC")),
            "local": pa.array([at.replace(tzinfo=None)], pa.timestamp("us")),
            "day": pa.array([date(1, 1, 1)], pa.date32()),
            "raw": pa.array([b"\xff\x00"], pa.binary()),
            "many": pa.array([[at, None]], pa.list_(pa.timestamp("us", tz="UTC"))),
            "deep": pa.array([{"a": {"b": [1, 2]}, "day": date(9999, 12, 31)}]),
            "map": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())),
            "none": pa.array([None], pa.string()),
            "big": pa.array([2**63 - 1], pa.int64()),
            "odd": pa.array([float("nan")], pa.float64()),
            "yes": pa.array([True], pa.bool_()),
        }
    )
    write_deltalake("t", table)
    assert stream().read() == [
        {
            "decimal": "12345678901234567890.123456789",
            "at": "2026-01-02T03:04:05.678901Z",
            "local": "2026-01-02T03:04:05.678901",
            "day": "0001-01-01",
            "raw": b"\xff\x00",
            "many": ["2026-01-02T03:04:05.678901Z", None],
            "deep": {"a": {"b": [1, 2]}, "day": "9999-12-31"},
            "map": {"k": 1.5},
            "none": None,
            "big": 2**63 - 1,
            "odd": None,
            "yes": True,
        }
    ]


def test_partition_values_are_columns_whatever_characters_they_have() -> None:
    table = pa.table(
        {
            "k": ["a b", "c/d%", "é", None],
            "day": pa.array([date(2026, 1, 1)] * 4),
            "at": pa.array([datetime(2026, 1, 1, 2, tzinfo=UTC)] * 4, pa.timestamp("us", tz="UTC")),
            "n": [1, 2, 3, 4],
        }
    )
    write_deltalake("t", table, partition_by=["k", "day", "at"])
    reading = stream()
    write_deltalake("t", table, mode="append")
    expected = [
        {"k": k, "day": "2026-01-01", "at": "2026-01-01T02:00:00Z", "n": n}
        for k, n in (("a b", 1), ("c/d%", 2), ("é", 3), (None, 4))
    ]
    assert sorted(reading.read(), key=lambda row: row["n"]) == [
        one for one in expected for _ in range(2)
    ]
    write_deltalake("t", table, mode="append")
    assert sorted(reading.read(), key=lambda row: row["n"]) == expected


def test_columns_and_conditions_choose_what_is_read() -> None:
    for k in "ab":
        table = pa.table({"k": [k] * 4, "n": [1, 2, 3, 4], "x": ["s"] * 4})
        write_deltalake("t", table, mode="append", partition_by=["k"])
    more = ", columns: [n], where: [[k, '=', b], [n, in, [2, 4, 9]], [x, '!=', null]]"
    reading = stream(more)
    assert reading.read() == rows(2, 4)
    assert reading.open().probe() == "the Delta table ./t has 3 columns, version 1"
    for wrong, text in (
        (", columns: [m]", r"columns has 'm'; the Delta table ./t has the columns"),
        (", where: [[m, '=', 1]]", r"where has the column 'm'"),
        (", where: [[n, '=', one]]", r'the value of where for n is "one", which does not fit'),
    ):
        with pytest.raises(StreamerError, match=text):
            stream(wrong).open().probe()


def test_metadata_say_where_a_row_is_from() -> None:
    append(1)
    reading = stream()
    [[message]] = reading.batches()
    path = message.meta["path"]
    assert (Path("t") / path).exists()
    assert message.meta == {"table": "t", "table_version": 0, "path": path, "operation": "read"}
    append(2)
    [[message]] = reading.batches()
    assert (message.meta["table_version"], message.meta["operation"]) == (1, "insert")


def test_a_start_is_a_version_or_a_time_or_now() -> None:
    for number in range(4):
        append(number)
    late = stream(", start_from: latest")
    assert late.read() == []
    assert stream(", start_from: '2'").read() == rows(2, 3)
    times = {one["version"]: one["timestamp"] for one in DeltaTable("t").history()}
    at = datetime.fromtimestamp(times[3] / 1000, UTC).isoformat()
    assert stream(f", start_from: '{at}'").read()[-1:] == rows(3)
    assert stream(", start_from: '2999-01-01T00:00:00Z'").read() == []
    append(4)
    assert late.read() == rows(4)


def test_a_table_that_is_made_later_is_read_from_its_first_version() -> None:
    reading = stream()
    assert reading.read() == []
    append(1)
    append(2)
    assert reading.read() == rows(1, 2)
    with pytest.raises(StreamerError, match="is not there, and read_once reads it as it is"):
        TableStream("{delta: {path: ./u, read_once: true}}").open()


def test_an_input_that_reads_once_ends_with_the_version_of_its_first_start() -> None:
    append(1)
    append(2)
    reading = stream(", read_once: true")
    source = reading.open()
    append(3)
    latest = source.latest_offset(source.initial_offset(), 1, Limit(1))
    assert not latest.is_ended
    reading.offset = latest.offset
    assert reading.read() == rows(2)
    assert reading.offset is not None
    assert reading.open().latest_offset(reading.offset, 1, Limit()).is_ended


def test_columns_that_are_added_while_it_is_read_come_with_their_rows() -> None:
    append(1)
    reading = stream()
    assert reading.read() == rows(1)
    append(2)
    append(3, new=["x"])
    append(4)
    assert reading.read() == [*rows(2), {"n": 3, "new": "x"}, {"n": 4, "new": None}]


def test_a_compaction_while_it_is_read_changes_nothing() -> None:
    for number in range(6):
        append(number)
    reading = stream()
    source = reading.open()
    latest = source.latest_offset(source.initial_offset(), 1, Limit(2))
    reading.offset = latest.offset
    DeltaTable("t").optimize.compact()
    append(6)
    assert reading.read() == rows(2, 3, 4, 5, 6)


def test_a_commit_between_planning_and_reading_is_for_the_next_micro_batch() -> None:
    append(1)
    reading = stream()
    source = reading.open()
    start = source.initial_offset()
    latest = source.latest_offset(start, 1, Limit())
    append(2)
    pieces = source.split(start, latest.offset, 1)
    assert len(pieces) == 1
    reading.offset = latest.offset
    assert reading.read() == rows(2)


def test_changes_stop_or_are_left_out_or_come_as_rows() -> None:
    append(1, 2, 3)
    readings = {mode: stream(f", on_change: {mode}") for mode in ("stop", "skip", "rows")}
    for reading in readings.values():
        assert reading.read() == rows(1, 2, 3)
    DeltaTable("t").delete("n = 2")
    append(4)
    with pytest.raises(StreamerError, match=r"version 1 of the Delta table ./t \(DELETE\) changes"):
        readings["stop"].read()
    assert readings["skip"].read() == rows(4)
    removed = [("delete", row) for row in rows(1, 2, 3)]
    kept = [("insert", row) for row in rows(1, 3, 4)]
    assert readings["rows"].read_operations() == removed + kept


def test_changes_come_as_the_feed_of_the_table_has_them() -> None:
    table = pa.table({"n": [1, 2, 3]})
    write_deltalake("t", table, configuration={"delta.enableChangeDataFeed": "true"})
    reading = stream(", on_change: rows")
    assert reading.read() == rows(1, 2, 3)
    DeltaTable("t").update(predicate="n = 2", updates={"n": "20"})
    DeltaTable("t").delete("n = 3")
    found = reading.read_operations()
    assert sorted(found, key=str) == [
        ("delete", {"n": 3}),
        ("update_after", {"n": 20}),
        ("update_before", {"n": 2}),
    ]


def test_files_and_versions_that_are_gone_are_errors_with_the_remedy() -> None:
    append(1)
    append(2)
    reading = stream(", start_from: '1'")
    source = reading.open()
    start = source.initial_offset()
    latest = source.latest_offset(start, 1, Limit())
    [piece] = source.split(start, latest.offset, 1)
    (Path("t") / piece.file.path).unlink()
    with pytest.raises(StreamerError, match="is gone: VACUUM, or somebody else, has deleted it"):
        list(source.read(piece, None))  # type: ignore[arg-type]
    append(3)
    DeltaTable("t").create_checkpoint()
    for version in range(2):
        Path(f"t/_delta_log/{version:020}.json").unlink()
    with pytest.raises(StreamerError, match="does not have version 1 any more: it was cleaned"):
        reading.read()


def test_a_table_that_was_made_anew_is_not_taken_for_the_former_one() -> None:
    append(1)
    reading = stream()
    assert reading.read() == rows(1)
    write_deltalake("u", pa.table({"n": [7]}))
    Path("t").rename("former")
    Path("u").rename("t")
    append(8)
    with pytest.raises(StreamerError, match="was made anew since this stream has read it"):
        reading.read()


def test_files_without_statistics_are_counted_by_their_footers() -> None:
    append(1, 2)
    properties = {"delta.dataSkippingNumIndexedCols": "0"}
    DeltaTable("t").alter.set_table_properties(properties)
    log = Path("t/_delta_log/00000000000000000000.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            del action["add"]["stats"]
    log.write_text("\n".join(json.dumps(one) for one in actions))
    assert stream().read(Limit(1)) == rows(1, 2)
    assert stream(", start_from: '0'").read(Limit(1)) == rows(1, 2)


def test_commits_of_this_program_are_read_as_any_others() -> None:
    properties = CommitProperties(custom_metadata={"x": "y"})
    write_deltalake("t", pa.table({"n": [1]}), commit_properties=properties)
    assert stream().read() == rows(1)
