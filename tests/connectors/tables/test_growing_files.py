"""The input `parquet` over directories to which files come: each file is read once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow import parquet

from streamer.connectors.tables.growing_files import partition_values
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import Said, built, planned, raws_of
from tests.connectors.tables.table_reading import StateContext, TableStream


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


class DirectoryContext(StateContext):
    """A context with a directory in the checkpoint."""

    directory = Path("checkpoint")


def stream(more: str = "", paths: str = "./rows") -> TableStream:
    text = f"{{parquet: {{paths: ['{paths}'], read_once: false{more}}}}}"
    return TableStream(text, DirectoryContext())


def write(path: str, *numbers: int, **columns: Any) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"n": pa.array(numbers, pa.int64()), **columns})
    parquet.write_table(table, f"{path}.tmp", row_group_size=2)
    os.replace(f"{path}.tmp", path)


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"n": number} for number in numbers]


@pytest.mark.parametrize("limit", [Limit(1), Limit(3), Limit()])
def test_files_are_read_as_they_come_whatever_their_names_are(limit: Limit) -> None:
    reading = stream()
    assert reading.read(limit) == []
    write("rows/m.parquet", 1, 2, 3, 4, 5)
    write("rows/deep/z.parquet", 6)
    assert sorted(reading.read(limit), key=str) == rows(1, 2, 3, 4, 5, 6)
    write("rows/a.parquet", 7)
    write("rows/other.txt", 99)
    write("rows/_draft.parquet", 99)
    write("rows/.hidden.parquet", 99)
    assert reading.read(limit, parts=2) == rows(7)
    os.remove("rows/a.parquet")
    assert reading.read(limit) == []


def test_batches_have_rows_of_one_file() -> None:
    write("rows/a.parquet", 1, 2, 3, 4, 5)
    write("rows/b.parquet", 6)
    source = stream(", batch_count: 2").open()
    start = source.initial_offset()
    sizes = []
    for _ in range(2):
        latest = source.latest_offset(start, 1, Limit(3))
        ex = Said().execution()
        for piece in source.split(start, latest.offset, 1):
            sizes += [len(batch) for chunk in source.read(piece, ex) for batch in chunk]
        start = latest.offset
    assert sizes == [2, 2, 1, 1]


def test_a_file_that_is_being_written_waits_until_it_is_whole() -> None:
    write("whole.parquet", 1, 2)
    body = Path("whole.parquet").read_bytes()
    Path("rows").mkdir()
    Path("rows/a.parquet").write_bytes(body[:-10])
    reading = stream()
    assert reading.read() == []
    write("rows/b.parquet", 3)
    assert reading.read() == rows(3)
    Path("rows/a.parquet").write_bytes(body)
    assert reading.read() == rows(1, 2)


def test_a_journal_that_was_cut_off_goes_on_before_the_cut() -> None:
    write("rows/a.parquet", 1)
    reading = stream()
    assert reading.read() == rows(1)
    journal = Path("checkpoint/files.jsonl")
    with journal.open("ab") as end:
        end.write(b'[["half a li')
    write("rows/b.parquet", 2)
    assert reading.read() == rows(2)
    assert len(journal.read_bytes().splitlines()) == 2
    journal.unlink()
    with pytest.raises(StreamerError, match=r"ends with round -1, and this stream has read round"):
        reading.read()


def test_a_file_that_was_replaced_or_deleted_before_it_was_read_is_an_error() -> None:
    for more in ("", ", on_replaced: restart"):
        write("rows/a.parquet", 1)
        source = stream(more).open()
        start = source.initial_offset()
        [piece] = source.split(start, source.latest_offset(start, 1, Limit()).offset, 1)
        write("rows/a.parquet", *range(100))
        said = Said()
        if more:
            [[[message]]] = list(source.read(piece, said.execution()))
            assert (message.doc, said.log[0][0]) == ({"n": 0}, "WARN")
        else:
            with pytest.raises(StreamerError, match="was replaced since it was noticed"):
                list(source.read(piece, said.execution()))
        os.remove("rows/a.parquet")
        with pytest.raises(StreamerError, match="a.parquet is gone: somebody has deleted it"):
            list(source.read(piece, said.execution()))
        os.remove("checkpoint/files.jsonl")


def test_a_damaged_file_is_logged_and_left_out() -> None:
    write("rows/b.parquet", 1)
    Path("rows/a.parquet").write_bytes(b"PAR1 no parquet PAR1")
    source = stream().open()
    start = source.initial_offset()
    said = Said()
    pieces = source.split(start, source.latest_offset(start, 1, Limit()).offset, 1)
    chunks = [chunk for piece in pieces for chunk in source.read(piece, said.execution())]
    assert [message.doc for chunk in chunks for [message] in chunk] == rows(1)
    assert [level for level, _ in said.log] == ["ERROR"]
    assert said.counts == {"input_error": 1}


def test_directories_are_columns_and_conditions_choose_rows() -> None:
    write("rows/day=2026-01-01/k=a%20b/1.parquet", 1, 2)
    write("rows/day=2026-01-02/k=7/2.parquet", 3, 4)
    write("rows/day=2026-01-02/k=__HIVE_DEFAULT_PARTITION__/3.parquet", 5)
    more = (
        ", hive_partitioning: true, where: [[n, '>', 1], [day, in, ['2026-01-01', '2026-01-02']]]"
    )
    found = stream(more).read()
    assert sorted(found, key=lambda row: row["n"]) == [
        {"n": 2, "day": "2026-01-01", "k": "a b"},
        {"n": 3, "day": "2026-01-02", "k": "7"},
        {"n": 4, "day": "2026-01-02", "k": "7"},
        {"n": 5, "day": "2026-01-02", "k": None},
    ]
    Path("checkpoint/files.jsonl").unlink()
    chosen = stream(", hive_partitioning: true, columns: [k], where: [[k, '=', '7']]").read()
    assert chosen == [{"k": "7"}, {"k": "7"}]


def test_the_files_of_a_bounded_input_have_the_same_columns() -> None:
    write("rows/day=2026-01-01/1.parquet", 1, 2)
    write("rows/day=2026-01-02/2.parquet", 3, 4)
    fields = "hive_partitioning: true, columns: [day, n], where: [[n, '!=', 3]]"
    text = f"input: {{parquet: {{paths: ['rows/**/*.parquet'], {fields}}}}}"
    source = built(text).open(cast(InputContext, DirectoryContext()))
    found: list[bytes] = []
    for start, latest in planned(source, Limit(1)):
        found += raws_of(source, start, latest.offset)
    assert found == [
        b'{"day":"2026-01-01","n":1}',
        b'{"day":"2026-01-01","n":2}',
        b'{"day":"2026-01-02","n":4}',
    ]


def test_a_column_that_only_some_files_have_is_null_for_conditions() -> None:
    write("rows/a.parquet", 1)
    write("rows/b.parquet", 2, x=["y"])
    assert stream(", where: [[x, '=', y]]").read() == [{"n": 2, "x": "y"}]
    Path("checkpoint/files.jsonl").unlink()
    assert stream(", where: [[x, '=', null]]").read() == rows(1)


def test_values_of_directories_are_texts() -> None:
    values = partition_values("/rows/a=1/b=01/c=-/d=/e/f=x.parquet")
    assert {name: value.as_py() for name, value in values.items()} == {
        "a": "1",
        "b": "01",
        "c": "-",
        "d": "",
    }


def test_metadata_are_those_of_files() -> None:
    write("rows/a.parquet", 1)
    os.utime("rows/a.parquet", (1_600_000_000, 1_600_000_000))
    [[message]] = stream().batches()
    assert message.meta == {
        "path": "./rows/a.parquet",
        "mod_time_unix": 1_600_000_000,
        "mod_time": "2020-09-13T12:26:40Z",
    }
