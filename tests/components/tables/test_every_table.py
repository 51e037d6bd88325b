"""Lookup tables of every kind: their rows, keys, bounds and what is said of what is wrong."""

from __future__ import annotations

import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import parquet
from pyiceberg.catalog import load_catalog

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.lookup_tables import LookupTable
from streamer.sdk.lookup_table import TableError, TableLoader, read_version
from streamer.sdk.spec import Kind

ROWS = [{"city": "Bonn", "n": 1}, {"city": "St. Ives", "n": None}]
EX = Execution(lambda: 0)


def _loader(yaml: str) -> TableLoader:
    text = f"table_resources: [{{label: cities, {yaml}}}]"
    found: TableLoader = build_context(parse_config(text, env={}).resources).resource(
        Kind.TABLE, "cities"
    )
    return found


def _table(yaml: str) -> LookupTable:
    return read_version(_loader(yaml).load(EX).body)


def _sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE cities (city TEXT, n INTEGER)")
    connection.executemany("INSERT INTO cities VALUES (:city, :n)", ROWS)
    connection.commit()
    connection.close()


def _tables(directory: Path) -> None:
    rows = pa.Table.from_pylist(ROWS)
    write_deltalake(directory / "delta", rows.append_column("x", pa.array([1, 2])))
    properties = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"{directory}/lake"}
    catalog = load_catalog("default", type="sql", **properties)
    catalog.create_namespace("demo")
    catalog.create_table("demo.cities", rows.schema).append(rows)


@pytest.fixture
def answers() -> str:
    """Serve rows by the format that the path names; return the server's URL."""
    bodies = {
        "/json": json.dumps(ROWS),
        "/json_lines": "\n".join(map(json.dumps, ROWS)),
        "/csv": "city,n\nBonn,1\nSt. Ives,\n",
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bodies[self.path].encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_same_rows_are_found_wherever_they_are(tmp_path: Path, answers: str) -> None:
    (tmp_path / "c.csv").write_text('city;n\nBonn;1\n"St. Ives";\n')
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "c.parquet")
    _sqlite(tmp_path / "c.db")
    catalog = f"url: 'sqlite:///{tmp_path}/catalog.db', warehouse: {tmp_path}/lake"
    _tables(tmp_path)
    kinds = [
        f"delta: {{path: {tmp_path}/delta, columns: [city, n], key: city}}",
        f"iceberg: {{catalog: {{{catalog}}}, namespace: demo, table: cities, key: city}}",
        f"csv: {{path: {tmp_path}/c.csv, delimiter: ';', types: {{n: int}}, key: city}}",
        f"json_lines: {{path: {tmp_path}/c.jsonl, key: city}}",
        f"parquet: {{path: {tmp_path}/c.parquet, key: city}}",
        f"sql: {{driver: sqlite, dsn: 'file:{tmp_path}/c.db', query: SELECT * FROM cities, "
        "key: city}",
        f"inline: {{rows: {json.dumps(ROWS)}, key: city}}",
        *(
            f"http: {{url: '{answers}/{form}', format: {form}, types: {{n: int}}, key: city}}"
            for form in ("json", "json_lines", "csv")
        ),
    ]
    for yaml in kinds:
        table = _table(yaml)
        assert table.all() == {row["city"]: row for row in ROWS}, yaml
        assert table.get("Bonn") == ROWS[0] and table.get("bonn") is None, yaml
    assert len({_loader(yaml).load(EX).version for yaml in kinds}) == 1


def test_a_key_is_compared_by_its_text(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,a\n7,x\ntrue,y\n7,z\n")
    table = _table(f"csv: {{path: {tmp_path}/c.csv, key: id}}")
    assert [table.get(key) for key in (7, 7.0, "7")] == [{"id": "7", "a": "z"}] * 3
    assert table.get(True) == {"id": "true", "a": "y"}
    assert table.get(None) is None and table.get({"id": 7}) is None
    loaded = _loader(f"csv: {{path: {tmp_path}/c.csv, key: id}}").load(EX)
    assert (loaded.rows, loaded.remark) == (2, "1 rows have the key of a later row, which counts")


def test_what_is_given_out_is_a_copy() -> None:
    table = LookupTable({"a": {"x": {"y": [1]}}, "b": {"x": 1}})
    row = table.get("a")
    assert row is not None
    row["x"]["y"].append(2)
    table.all()["b"]["x"] = 2
    assert table.get("a") == {"x": {"y": [1]}} and table.get("b") == {"x": 1}


def test_a_mapping_makes_a_key_and_leaves_rows_out() -> None:
    rows = json.dumps([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": None, "b": 4}])
    mapping = "root = if this.a == null { deleted() } else { [this.a, this.b] }"
    loader = _loader(f"inline: {{rows: {rows}, key_mapping: '{mapping}'}}")
    assert read_version(loader.load(EX).body).get([1, 3]) == {"a": 1, "b": 3}
    assert loader.probe() == "2 rows; 1 of 3 rows have no key and are left out"


@pytest.mark.parametrize(
    ("name", "content", "more", "expected"),
    [
        ("csv", "a,b\n1\n", "", "it is no CSV: record on line 2: wrong number of fields"),
        ("csv", "b\n1\n", "", "row 1 has no column 'a'; it has b"),
        ("csv", "a\nx\n", ", types: {a: int}", "row 1, column 'a': 'x' is no int"),
        ("csv", "a\nx\n", ", types: {c: int}", "types names the column 'c'; it has a"),
        ("json_lines", '{"a":1}\n[]', "", "line 2 is not a JSON object"),
        ("json_lines", '{"a":1}\n{', "", "line 2 is no JSON: "),
        ("parquet", "PAR1", "", "it is no Parquet file: "),
        ("csv", "a\n1\n2\n", ", max_rows: 1", "it has over 1 rows, which is its max_rows"),
        ("csv", "a\n1\n", ", max_bytes: 5", "its rows are 15 bytes of JSON, over its max_bytes"),
    ],
)
def test_what_is_wrong_with_rows_is_said(
    tmp_path: Path, name: str, content: str, more: str, expected: str
) -> None:
    (tmp_path / "rows").write_text(content)
    with pytest.raises(TableError) as error:
        _loader(f"{name}: {{path: {tmp_path}/rows, key: a{more}}}").load(EX)
    assert str(error.value).startswith(expected)


def test_a_file_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="gone.csv: no such file or directory"):
        _loader(f"csv: {{path: {tmp_path}/gone.csv, key: a}}").load(EX)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("csv: {path: a.csv}", "neither is set; expected one of them"),
        ("csv: {path: a.csv, key: a, key_mapping: root = 1}", "both are set"),
        ("csv: {path: a.csv, key: a, types: {a: number}}", "expected one of string, int, float"),
        ("csv: {path: a.csv, key: a, delimiter: ';;'}", "expected one letter"),
        ("csv: {path: a.csv, key: a, refresh_interval: -1s}", "is negative"),
        ("inline: {rows: [1], key: a}", "has no object in the place 1"),
    ],
)
def test_fields_are_checked(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_config(f"table_resources: [{{label: cities, {text}}}]", env={})
    assert expected in str(error.value)


def test_a_table_that_is_not_there_is_a_finding() -> None:
    mapping = "pipeline: {processors: [mutation: 'root.a = table(\"citys\").get(this.b)']}\n"
    tables = "table_resources: [{label: cities, inline: {rows: [], key: a}}]"
    with pytest.raises(ConfigError) as error:
        parse_config(mapping + tables, env={})
    expected = "there is no table resource with the label 'citys'; did you mean cities?"
    assert expected in str(error.value)


def test_another_version_of_a_table_is_another_sign(tmp_path: Path) -> None:
    path = tmp_path / "delta"
    loader = _loader(f"delta: {{path: {path}, where: [[n, '!=', null]], key: city}}")
    with pytest.raises(TableError, match=f"the Delta table {path} is not there"):
        loader.load(EX)
    _tables(tmp_path)
    before = loader.change_sign()
    assert loader.load(EX).rows == 1
    write_deltalake(path, pa.table({"city": ["Ulm"], "n": [3]}), mode="append", schema_mode="merge")
    assert loader.change_sign() != before
    assert loader.load(EX).rows == 2
