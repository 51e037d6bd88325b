"""Clients of tables: commits that are whole and known, columns that are added, and checks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from streamer.connectors.iceberg.iceberg_table import CatalogConnection, IcebergClient
from streamer.connectors.tables.table_client import TableCommit, TableUnavailableError
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.errors import StreamerError
from tests.connectors.tables.table_kinds import (
    KINDS,
    TableKind,
    make_delta,
    make_iceberg,
    open_catalog,
    replacing,
)

pytestmark = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


TYPES = {
    **dict.fromkeys("nmv", pa.int64()),
    **dict.fromkeys("kx", pa.string()),
    "new": pa.float64(),
}


def commit(batch: int, writer: str = "w", **columns: list[object]) -> TableCommit:
    schema = pa.schema([(name, TYPES[name]) for name in columns])
    return TableCommit(writer, batch, pa.table(columns, schema=schema))


def test_a_table_is_made_and_gets_columns(kind: TableKind, tmp_path: Path) -> None:
    client = kind.make(tmp_path, partition_by=["k"])
    assert client.load_columns() is None
    assert client.find_committed("w") == -1
    assert "is not there yet" in client.check()
    client.commit(commit(0, n=[1, 2], k=["a", "b"]))
    client.commit(commit(1, n=[3], k=["a"], new=[1.5]))
    client.commit(commit(2, n=[4], k=[None], new=[None]))
    assert kind.rows(tmp_path) == [
        {"n": 1, "k": "a", "new": None},
        {"n": 2, "k": "b", "new": None},
        {"n": 3, "k": "a", "new": 1.5},
        {"n": 4, "k": None, "new": None},
    ]
    columns = client.load_columns()
    assert columns is not None
    assert columns.names == ["n", "k", "new"]
    assert columns.types == [pa.int64(), pa.string(), pa.float64()]
    assert "3 columns" in client.check()


def test_each_writer_knows_the_newest_micro_batch_that_it_has_committed(
    kind: TableKind, tmp_path: Path
) -> None:
    client = kind.make(tmp_path)
    client.commit(commit(7, "one", n=[1]))
    client.commit(commit(3, "two", n=[2]))
    client.commit(commit(8, "one", n=[3]))
    for known in (client, kind.make(tmp_path)):
        assert [known.find_committed(name) for name in ("one", "two", "three")] == [8, 3, -1]


def test_a_table_that_others_change_is_seen_as_it_is(kind: TableKind, tmp_path: Path) -> None:
    client, other = kind.make(tmp_path), kind.make(tmp_path)
    client.commit(commit(0, n=[1]))
    other.commit(commit(0, "other", n=[2], x=["y"]))
    client.commit(commit(1, n=[3], x=[None]))
    assert [row["n"] for row in kind.rows(tmp_path)] == [1, 2, 3]
    assert client.load_columns() == other.load_columns()


def test_a_row_replaces_the_one_with_its_key(kind: TableKind, tmp_path: Path) -> None:
    client = kind.make(tmp_path, keys=["k", "n"], partition_by=["k"])
    client.commit(replacing(commit(0, n=[1, 2], k=["a", "b"], v=[1, 2])))
    client.commit(replacing(commit(1, n=[1, 2], k=["a", "a"], v=[10, 20])))
    client.commit(replacing(commit(2, n=[1], k=["b"], v=[None], x=["y"])))
    # A replay: the same, once.
    client.commit(replacing(commit(2, n=[1], k=["b"], v=[5], x=[None])))
    assert sorted(kind.rows(tmp_path), key=lambda row: (row["k"], row["n"])) == [
        {"n": 1, "k": "a", "v": 10, "x": None},
        {"n": 2, "k": "a", "v": 20, "x": None},
        {"n": 1, "k": "b", "v": 5, "x": None},
        {"n": 2, "k": "b", "v": 2, "x": None},
    ]
    assert client.find_committed("w") == 2


def test_keys_that_the_table_has_not_are_named(kind: TableKind, tmp_path: Path) -> None:
    kind.make(tmp_path).commit(commit(0, n=[1]))
    with pytest.raises(StreamerError, match=r"has 'k'; .* has the columns n$"):
        kind.make(tmp_path, keys=["n", "k"]).check()


def test_a_store_that_refuses_is_waited_for(kind: TableKind, tmp_path: Path) -> None:
    directory = tmp_path / "gone"
    directory.mkdir()
    client = kind.make(directory)
    client.commit(commit(0, n=[1]))
    moved = directory.rename(tmp_path / "moved")
    directory.write_text("no directory")
    with pytest.raises(TableUnavailableError, match=client.describe().split()[-1]):
        client.commit(commit(1, n=[2]))
    directory.unlink()
    moved.rename(directory)
    client.commit(commit(1, n=[2]))
    assert [row["n"] for row in kind.rows(directory)] == [1, 2]


def test_what_is_special_to_a_format(kind: TableKind, tmp_path: Path) -> None:
    if kind.name == "delta":
        assert make_delta(tmp_path).explain_name("a b") == "Delta allows no ' ' in names"
        make_delta(tmp_path, partition_by=["k"]).commit(commit(0, n=[1], k=["x"], m=[1]))
        with pytest.raises(StreamerError, match="is partitioned by k, which cannot be changed"):
            make_delta(tmp_path, partition_by=["m"]).check()
        return
    assert make_iceberg(tmp_path).explain_name("a.b") == "it has a dot in it"
    catalog = IcebergClient(
        CatalogConnection(
            "default", {"type": "sql", "uri": f"sqlite:///{tmp_path}/new.db", "warehouse": "."}
        ),
        *("demo", "rows"),
    )
    assert "is not there yet" in catalog.check()
    assert not (tmp_path / "new.db").exists()
    make_iceberg(tmp_path).commit(commit(5, "name", n=[1]))
    table = open_catalog(tmp_path).load_table("demo.rows")
    assert table.properties == {"streamer.committed.name": "5"}
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["streamer.micro-batch"] == "5"


def test_a_check_of_an_output_says_what_is_made_and_the_last_commits(
    kind: TableKind, tmp_path: Path
) -> None:
    client = kind.make(tmp_path)
    declared = pa.schema([("n", pa.int64()), ("day", pa.date32())])
    output = TableOutput(client, declared, ColumnCache(), is_open=True)
    text = output.probe()
    assert text.endswith("made with the first rows; has the columns n bigint, day date")
    client.commit(commit(7, n=[1, 2]))
    text = output.probe()
    assert "has 1 columns" in text
    assert "; gets the columns day date; last commits: " in text
    assert "2 rows, 1 file, micro-batch 7)" in text
