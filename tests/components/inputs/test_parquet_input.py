"""The `parquet` input: rows of files that pyarrow has written, batches, and restarts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from streamer.sdk.input.replayable import Limit

from .reading import Said, batches_of, built, planned

ALL = Limit()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, numbers: range, group: int = 4) -> None:
    table = pa.table({"n": [f"{name}{number}" for number in numbers]})
    parquet.write_table(table, f"{name}.parquet", row_group_size=group)


def source(more: str = "") -> Any:
    return built(f"input: {{parquet: {{paths: ['*.parquet']{more}}}}}").continue_from([])


def batches(of: Any, limit: Limit = ALL, said: Said | None = None) -> list[list[Any]]:
    ex = (said or Said()).execution()
    return [
        [message.doc for message in batch]
        for start, latest in planned(of, limit)
        for batch in batches_of(of, start, latest.offset, ex=ex)
    ]


@pytest.mark.parametrize("limit", [Limit(1), Limit(3), Limit(7), Limit(size=30), ALL])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_batches_are_those_of_each_file_wherever_micro_batches_end(
    here: Path, limit: Limit, size: int
) -> None:
    expected = []
    for name in "abc":
        write(name, range(10))
        rows = [{"n": f"{name}{number}"} for number in range(10)]
        expected += [rows[at : at + size] for at in range(0, 10, size)]
    assert batches(source(f", batch_count: {size}"), limit) == expected


def test_rows_are_objects_with_the_files_metadata(here: Path) -> None:
    at = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    table = pa.table({"a": [1], "at": pa.array([at], pa.timestamp("ms")), "raw": [b"\xff"]})
    parquet.write_table(table, "in.parquet")
    of = source()
    [[message]] = batches_of(
        of, of.initial_offset(), of.latest_offset(of.initial_offset(), 0, ALL).offset
    )
    assert message.raw == b'{"a":1,"at":1577934245000,"raw":"/w=="}'
    assert message.meta["path"] == "in.parquet"


def test_many_rows_are_read_in_order(here: Path) -> None:
    write("a", range(5000), group=700)
    found = batches(source(", batch_count: 10"), Limit(900))
    assert [row["n"] for batch in found for row in batch] == [f"a{n}" for n in range(5000)]
    assert {len(batch) for batch in found} == {10}


def test_what_is_no_parquet_is_told_and_left_out(here: Path) -> None:
    write("a", range(2))
    Path("b.parquet").write_bytes(b"no parquet at all")
    write("c", range(1))
    said = Said()
    assert batches(source(), said=said) == [[{"n": "a0"}], [{"n": "a1"}], [{"n": "c0"}]]
    assert "b.parquet" in said.log[0][1]


def test_an_empty_file_has_no_rows(here: Path) -> None:
    write("a", range(0))
    assert batches(source()) == []
