"""`sql_select` and `sql_raw` as inputs, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import open_input as opened
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import batches_of, built
from tests.components.inputs.rooms import Lodging, lodging

from .databases import Place


@contextmanager
def open_input(directory: Path, yaml: str) -> Iterator[tuple[Lodging, Any]]:
    source = built(f"input: {{{yaml}}}")
    with lodging(directory) as lodged:
        yield lodged, opened(source, lodged.room)
    for thread in lodged.house.threads:
        thread.join(60)
        assert not thread.is_alive()


def rows_of(directory: Path, yaml: str) -> list[Any]:
    """Read an input to its end."""
    found: list[Any] = []
    with open_input(directory, yaml) as (lodged, source):
        at, end = source.initial_offset(), time.monotonic() + 60
        while True:
            latest = source.latest_offset(at, 0, Limit())
            batches = batches_of(source, at, latest.offset)
            assert all(len(batch) == 1 for batch in batches)
            found += [json.loads(message.raw) for batch in batches for message in batch]
            at = latest.offset
            if latest.is_ended:
                return found
            assert time.monotonic() < end, lodged.log
            time.sleep(0.005)


def filled(db: Place, number: int) -> None:
    for start in range(0, number, 500):
        values = ",".join(f"({n}, 'n{n}')" for n in range(start, min(start + 500, number)))
        db.run(f"INSERT INTO {db.table} VALUES {values}")


def test_every_row_of_a_select_is_a_message(db: Place, tmp_path: Path) -> None:
    filled(db, 5)
    yaml = f"sql_select: {{{db.target}, table: {db.table}, columns: [name, id], "
    yaml += "where: id > ?, args_mapping: 'root = [ 1 + 1 ]', suffix: ORDER BY id DESC}"
    found = rows_of(tmp_path / "spool", yaml)
    assert found == [{"id": 4, "name": "n4"}, {"id": 3, "name": "n3"}]


def test_many_rows_come_in_order_and_no_row_ends_the_input(db: Place, tmp_path: Path) -> None:
    filled(db, 2501)
    query = f"SELECT id FROM {db.table} WHERE id < {db.mark(1)} ORDER BY id;"
    yaml = f"sql_raw: {{{db.target}, query: '{query}', args_mapping: 'root = [ $n ]'}}"
    found = rows_of(tmp_path / "a", yaml.replace("$n", "2501"))
    assert [row["id"] for row in found] == list(range(2501))
    assert rows_of(tmp_path / "b", yaml.replace("$n", "0")) == []


def test_what_has_landed_is_not_asked_for_again(db: Place, tmp_path: Path) -> None:
    filled(db, 3)
    yaml = f"sql_raw: {{{db.target}, query: SELECT id FROM {db.table} ORDER BY id}}"
    assert len(rows_of(tmp_path / "spool", yaml)) == 3
    db.run(f"DELETE FROM {db.table}")
    assert [row["id"] for row in rows_of(tmp_path / "spool", yaml)] == [0, 1, 2]


def test_a_query_that_fails_is_tried_again(db: Place, tmp_path: Path) -> None:
    yaml = f"sql_raw: {{{db.target}, query: SELECT id FROM {db.table}_later}}"
    with open_input(tmp_path / "spool", yaml) as (lodged, source):
        end = time.monotonic() + 60
        while lodged.counts.get("input_connection_lost", 0) < 1:
            assert time.monotonic() < end
            time.sleep(0.005)
        db.run(f"CREATE TABLE {db.table}_later AS SELECT 7 AS id")
        while not (latest := source.latest_offset(source.initial_offset(), 0, Limit())).is_ended:
            assert time.monotonic() < end
            time.sleep(0.005)
        [[message]] = batches_of(source, source.initial_offset(), latest.offset)
        assert message.raw == b'{"id":7}'
    assert lodged.log[0][1].startswith("Connection of sql_raw lost: ")


def test_arguments_that_cannot_be_found_end_the_start(tmp_path: Path) -> None:
    yaml = "sql_raw: {driver: sqlite, dsn: x.db, query: SELECT ?, args_mapping: 'root = $a'}"
    for mapping, text in (("5", "non-array result"), ("this.a", "args_mapping: ")):
        with (
            pytest.raises(StreamerError, match=text),
            open_input(tmp_path, yaml.replace("$a", mapping)),
        ):
            pass
