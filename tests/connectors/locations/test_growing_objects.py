"""The input `parquet` over objects that come, in each store."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from streamer.connectors.locations.location_files import LocationFiles
from streamer.connectors.tables.table_reader import TableReadError
from streamer.core.permissions import ALL
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import Said
from tests.connectors.tables.table_reading import StateContext, TableStream

pytestmark = pytest.mark.slow


class ObjectsContext(StateContext):
    """A context with a directory in the checkpoint."""

    directory = Path("checkpoint")


def stream(root: str, more: str = "") -> TableStream:
    text = f"{{parquet: {{paths: ['{root}rows'], read_once: false{more}}}}}"
    return TableStream(text, ObjectsContext())


def content(*numbers: int) -> bytes:
    body = BytesIO()
    parquet.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), body, row_group_size=2)
    return body.getvalue()


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"n": number} for number in numbers]


def test_objects_are_read_as_they_come(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = LocationFiles(ALL)
    reading = stream(root)
    assert reading.read(Limit(3)) == []
    files.put(f"{root}rows/m.parquet", content(1, 2, 3, 4, 5))
    files.put(f"{root}rows/deep/z.parquet", content(6))
    files.put(f"{root}rows/other.txt", b"x")
    files.put(f"{root}rows/_draft.parquet", content(99))
    files.put(f"{root}rows/part.parquet", content(7, 8)[:-4])
    assert sorted(reading.read(Limit(3)), key=str) == rows(1, 2, 3, 4, 5, 6)
    assert reading.read(Limit(3)) == []
    # One that comes is read whatever its name is, and one that was not whole once it is.
    files.put(f"{root}rows/a.parquet", content(9))
    files.put(f"{root}rows/part.parquet", content(7, 8))
    assert sorted(reading.read(), key=str) == rows(7, 8, 9)


def test_columns_and_directories_are_selected(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = LocationFiles(ALL)
    for day in ("2026-01-01", "2026-01-02"):
        files.put(f"{root}rows/day={day}/a.parquet", content(int(day[-1])))
    reading = stream(root, ", hive_partitioning: true, where: [[day, '>', '2026-01-01']]")
    assert reading.read() == [{"n": 2, "day": "2026-01-02"}]


@pytest.mark.parametrize("more", ["", ", on_replaced: restart"])
def test_an_object_that_is_replaced_or_gone_before_it_is_read(
    root: str, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = LocationFiles(ALL)
    name = f"{root}rows/a.parquet"
    files.put(name, content(1))
    source = stream(root, more).open()
    start = source.initial_offset()
    [piece] = source.split(start, source.latest_offset(start, 1, Limit()).offset, 1)
    files.put(name, content(*range(100, 200)))
    said = Said()
    if more:
        [[[message]]] = list(source.read(piece, said.execution()))
        assert (message.doc, said.log[0][0]) == ({"n": 100}, "WARN")
    else:
        with pytest.raises(TableReadError, match="was replaced since it was noticed"):
            list(source.read(piece, said.execution()))
    files.delete(name)
    with pytest.raises(TableReadError, match="is gone: somebody has deleted it"):
        list(source.read(piece, said.execution()))
