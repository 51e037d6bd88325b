"""Databases on Spark: rows are read on the driver, asked for and inserted in the workers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_rows_are_read_looked_up_and_inserted_once(run_stream, tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE given (id integer, name text)")
        db.execute("CREATE TABLE made (id integer PRIMARY KEY, name text, many integer)")
        db.executemany("INSERT INTO given VALUES (?, ?)", [(n, f"n{n}") for n in range(1000)])
    target = f"driver: sqlite, dsn: 'file:{path}'"
    ran = run_stream(f"""
input:
  sql_select: {{{target}, table: given, columns: [id], where: id < ?, args_mapping: 'root = [900]'}}
pipeline:
  processors:
    - jq: {{query: '.id'}}
    - sql_raw:
        driver: sqlite
        dsn: file:{path}
        query: SELECT id, name, (SELECT count(*) FROM given) AS many FROM given WHERE id = ?
        args_mapping: root = [ this ]
    - mapping: root = this.0
output:
  sql_insert:
    driver: sqlite
    dsn: file:{path}
    table: made
    columns: [id, name, many]
    args_mapping: root = [ this.id, this.name.uppercase(), this.many ]
    batching: {{count: 100}}
""")
    assert [line for line in ran.log if line[0] == "ERROR"] == []
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT * FROM made ORDER BY id").fetchall()
    assert found == [(n, f"N{n}", 1000) for n in range(900)]
