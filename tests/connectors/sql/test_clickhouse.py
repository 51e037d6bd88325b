"""ClickHouse's own ways, on a real server: values, placeholders, refusals and DSNs."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.sql.clickhouse import parse_clickhouse_dsn
from streamer.connectors.sql.drivers import find_driver
from streamer.connectors.sql.errors import SqlError
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port
from tests.servers.clickhouse import clickhouse_server
from tests.servers.hostile import raw_server

from .databases import Place
from .test_sql_inputs import rows_of
from .test_sql_processors import outcomes

_TABLES = itertools.count()


@pytest.fixture
def db(clickhouse_dsn: str) -> Place:
    return Place("clickhouse", clickhouse_dsn, f"things_{next(_TABLES)}")


def made(db: Place, columns: str) -> None:
    db.run(f"CREATE TABLE {db.table} ({columns}) ENGINE = MergeTree ORDER BY id")


def insert(db: Place, columns: str, mapping: str) -> Any:
    fields = f"{db.target}, table: {db.table}, columns: [{columns}], max_in_flight: 1"
    return built(f"sql_insert: {{{fields}, args_mapping: '{mapping}'}}")


@pytest.mark.slow
def test_ten_thousand_rows_go_in_and_come_out(db: Place, tmp_path: Path) -> None:
    made(db, "id UInt32, name String, at DateTime('UTC'), day Nullable(Date)")
    mapping = 'root = [ this, "it\'\'s " + this.string(), "2026-01-02T03:04:05Z", null ]'
    output = insert(db, "id, name, at, day", mapping)
    batches = [
        [Message(str(n).encode()) for n in range(at, at + 1000)] for at in range(0, 10_000, 1000)
    ]
    assert output.deliver(batches, Seen().ex).errors == [None] * 10
    fields = f"{db.target}, table: {db.table}, columns: ['*'], suffix: ORDER BY id"
    found = rows_of(tmp_path, f"sql_select: {{{fields}}}")
    expected = {"at": "2026-01-02T03:04:05Z", "day": None}
    assert found == [{"id": n, "name": f"it's {n}", **expected} for n in range(10_000)]


@pytest.mark.slow
def test_values_come_as_go_has_them(db: Place) -> None:
    query = (
        "SELECT toUInt8(1) AS a, 1.5 AS b, 'x' AS c, unhex('FF') AS d, NULL AS e, [1, 2] AS f, "
        "toDecimal32(1.5, 2) AS g, toDateTime('2020-01-02 03:04:05', 'Europe/Paris') AS h, "
        "toDate('2020-01-02') AS i, toDateTime(1577934245) AS j"
    )
    yaml = f"sql_raw:\n  {db.target.replace(', ', chr(10) + '  ')}\n  query: |\n    {query}"
    assert json.loads(outcomes(yaml, "{}")[0]) == [
        {
            **{"a": 1, "b": 1.5, "c": "x", "d": "\ufffd", "e": None, "f": [1, 2], "g": "1.5"},
            "h": "2020-01-02T03:04:05+01:00",
            "i": "2020-01-02T00:00:00Z",
            "j": "2020-01-02T03:04:05Z",
        }
    ]


@pytest.mark.slow
def test_arguments_stand_where_their_placeholders_do(db: Place) -> None:
    query = "SELECT '?%' AS a, $1 AS b, $2 AS c, $3 AS d, 5 % 3 AS e, $4 AS f -- $9"
    yaml = f"sql_raw:\n  {db.target.replace(', ', chr(10) + '  ')}\n  query: |\n    {query}\n"
    mapping = 'root = [ "it\'s \\\\ \\n?", null, 1.5, "2020-01-02T03:04:05Z" ]'
    yaml += f"  args_mapping: |\n    {mapping}"
    [found] = outcomes(yaml, "{}")
    assert json.loads(found) == [
        {
            **{"a": "?%", "b": "it's \\ \n?", "c": None, "d": 1.5, "e": 2},
            "f": "2020-01-02T03:04:05Z",
        }
    ]
    assert "ascending order" in outcomes(yaml.replace("$1", "$2"), "{}")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        ("Int32", "1", '"no number"'),
        ("UInt8", "1", "256"),
        ("UInt8", "1", "null"),
        ("String", '"x"', "5"),
        ("Date", '"2024-02-28"', '"2024-02-31"'),
        ("DateTime", '"2024-02-28 01:02:03"', '"soon"'),
        ("Float64", "1", '"x"'),
        ("Enum8('a' = 1)", '"a"', '"b"'),
        ("UUID", '"6f1ed002-ab5b-42d5-8d5b-000000000001"', '"x"'),
    ],
)
def test_only_values_that_do_not_fit_are_rejected(
    db: Place, column: str, good: str, bad: str
) -> None:
    made(db, f"id UInt32, v {column}")
    query = f"INSERT INTO {db.table} (id, v) VALUES ($1, $2)"
    mapping = "root = [ this.id, this.v ]"
    output = built(f"sql_raw: {{{db.target}, query: '{query}', args_mapping: '{mapping}'}}")
    values = [good, bad, good]
    batch = [Message(f'{{"id":{n},"v":{one}}}'.encode()) for n, one in enumerate(values)]
    [error] = output.deliver([batch], Seen().ex).errors
    assert error is not None and error.is_rejected and [*error.errors] == [1]
    assert sorted(row[0] for row in db.rows()) == [0, 2]


@pytest.mark.slow
def test_errors_say_what_the_server_says(db: Place) -> None:
    with pytest.raises(SqlError, match="^code: 60, message: Table default.none doesn't exist"):
        db.run("SELECT * FROM none")
    wrong = Place("clickhouse", db.dsn.replace("secret", "guess"), "none")
    with pytest.raises(SqlError, match="^code: 193, message: Wrong password for user streamer"):
        wrong.run("SELECT 1")


@pytest.mark.slow
def test_a_server_that_was_killed_is_found_again(tmp_path: Path) -> None:
    port = lasting_port()
    with clickhouse_server(tmp_path, port) as dsn:
        db = Place("clickhouse", dsn, "things")
        made(db, "id UInt32")
        output = insert(db, "id", "root = [ this ]")
        assert output.deliver([[Message(b"1")]], Seen().ex).errors == [None]
    [error] = output.deliver([[Message(b"2")]], Seen().ex).errors
    assert error is not None and "refused" in error.text
    with clickhouse_server(tmp_path, port):
        assert output.deliver([[Message(b"3")]], Seen().ex).errors == [None]
        assert sorted(row[0] for row in db.rows()) == [1, 3]


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400\r\n", b"\0\xff\xff\xff\xff\x0fx", b"\2" * 99]
)
def test_a_server_that_talks_rubbish(answer: bytes) -> None:
    def serve(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(4096)
        connection.sendall(answer)
        connection.close()

    with raw_server(serve) as address, pytest.raises(SqlError):
        Place("clickhouse", f"clickhouse://u:p@{address}/n?read_timeout=5s", "").run("SELECT 1")


def test_a_dsn_of_go() -> None:
    dsn = (
        "clickhouse://u:p%40@one,[::1]:9001,two:9002/name?dial_timeout=200ms&secure=true"
        "&skip_verify=true&max_execution_time=60&compress=lz4"
    )
    assert parse_clickhouse_dsn(dsn) == {
        **{"host": "one", "port": 9440, "alt_hosts": "[::1]:9001,two:9002"},
        **{"user": "u", "password": "p@", "database": "name", "secure": True, "verify": False},
        **{"connect_timeout": 0.2, "send_receive_timeout": 300.0},
        "settings": {"max_execution_time": "60", "use_client_time_zone": True},
    }
    old = parse_clickhouse_dsn("tcp://h:1?username=u&password=p&database=d&read_timeout=10s")
    assert [old[name] for name in ("user", "password", "database", "port")] == ["u", "p", "d", 1]
    assert old["send_receive_timeout"] == 10


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("http://h:8123/default", "HTTP is not available"),
        ("h:9000", "the DSN is not as clickhouse://"),
        ("clickhouse://h:99999/n", "99999"),
    ],
)
def test_a_dsn_that_cannot_be_followed_is_refused(dsn: str, text: str) -> None:
    with pytest.raises(SqlError, match=text):
        find_driver("clickhouse").engine(dsn)


def test_rows_are_not_replaced() -> None:
    fields = "driver: clickhouse, dsn: 'clickhouse://h/n', table: t, columns: [id]"
    body = f"{{{fields}, args_mapping: 'root = [ this ]', upsert_by: [id]}}"
    with pytest.raises(ConfigError, match="ClickHouse replaces no rows"):
        parse_config(f"output: {{sql_insert: {body}}}", env={})
