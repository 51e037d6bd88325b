"""Drivers of which nothing is tried on a server, but on what speaks its protocol, or is silent.

Their transactions are tried on SQLite, by SQLAlchemy's dialect of it.
"""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamer.connectors.sql.database import Database
from streamer.connectors.sql.drivers import find_driver
from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.mssql import MssqlDriver, parse_mssql_dsn
from streamer.connectors.sql.oracle import OracleDriver, parse_oracle_dsn
from streamer.connectors.sql.pool_bounds import PoolBounds
from streamer.connectors.sql.standard_driver import StandardDriver
from streamer.connectors.sql.statements import InsertStatement, SelectStatement
from streamer.connectors.sql.trino import parse_trino_dsn
from streamer.core.timestamps import Timestamp
from tests.servers.hostile import raw_server
from tests.servers.http import Asked, Reply, http_server


class LocalDriver(StandardDriver):
    """SQLite, whose transactions SQLAlchemy begins and ends."""

    def dialect(self, dsn: str) -> tuple[str, Callable[[], Any], dict[str, Any]]:
        return "sqlite", lambda: sqlite3.connect(dsn, check_same_thread=False), {}


class SerialDriver(LocalDriver):
    transaction_level = "SERIALIZABLE"


def test_a_transaction_counts_as_a_whole_and_leaves_the_connection_as_it_was(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "a.db")
    database = Database(SerialDriver(), path, PoolBounds(idle=1, open=1))

    def numbers() -> list[Any]:
        with sqlite3.connect(path) as other:
            return [row[0] for row in other.execute("SELECT id FROM t ORDER BY id")]

    database.run("CREATE TABLE t (id integer PRIMARY KEY)")
    for _ in range(2):
        with pytest.raises(SqlError), database.transaction() as session:
            session.run("INSERT INTO t VALUES (1)")
            session.run("INSERT INTO t VALUES (1)")
        assert numbers() == []
        database.run("INSERT INTO t VALUES (5)")
        assert numbers() == [5]
        with database.transaction() as session:
            session.run("DELETE FROM t")
            session.run("INSERT INTO t VALUES (7)")
            assert numbers() == [5]
        assert numbers() == [7]
        database.run("DELETE FROM t")
    database.close()


class Coordinator:
    """Answers as Trino's coordinator does: a page for each statement, or an error."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, asked: Asked) -> Reply:
        text = asked.body.decode()
        self.asked.append((text, asked.headers.get("x-trino-prepared-statement", "")))
        done: dict[str, Any] = {"id": "q", "stats": {"state": "FINISHED"}, "infoUri": ""}
        if "broken" in text:
            done["error"] = {
                "message": "line 1:8: it is broken",
                "errorCode": 1,
                "errorName": "INVALID_CAST_ARGUMENT" if "cast" in text else "SYNTAX_ERROR",
                "errorType": "USER_ERROR",
            }
        elif "SELECT" not in text or text.startswith(("PREPARE", "DEALLOCATE")):
            done["updateType"] = text.split()[0]
        else:
            kinds = {"a": "integer", "b": "varchar(9)", "c": "timestamp(3)", "d": "decimal(3,1)"}
            done["columns"] = [
                {"name": name, "type": kind, "typeSignature": _signature(kind)}
                for name, kind in kinds.items()
            ]
            done["data"] = [[1, "x", "2026-01-02 03:04:05.000", "1.5"], [None] * 4]
        return Reply(200, orjson.dumps(done), {"Content-Type": "application/json"})


def _signature(kind: str) -> dict[str, Any]:
    raw, _, arguments = kind.partition("(")
    numbers = [int(one) for one in arguments.rstrip(")").split(",") if one]
    return {"rawType": raw, "arguments": [{"kind": "LONG", "value": one} for one in numbers]}


def test_trino_is_asked_by_its_protocol() -> None:
    coordinator = Coordinator()
    with http_server(coordinator) as server:
        dsn = server.url.replace("http://", "http://me@") + "?catalog=c&schema=s"
        database = Database(find_driver("trino"), dsn, PoolBounds())
        found = database.run("SELECT * FROM t WHERE a > 5")
        assert found is not None
        assert found.objects() == [
            {"a": 1, "b": "x", "c": "2026-01-02T03:04:05Z", "d": "1.5"},
            {"a": None, "b": None, "c": None, "d": None},
        ]
        select = SelectStatement("t", ["a"], "b = ? AND c < ?")
        list(database.stream(select, ["it's", 5], 10))
        with database.transaction() as session:
            session.insert(InsertStatement("t", ["a", "b"]), [[1, "x"], [2, None]])
        with pytest.raises(SqlError, match="^line 1:8: it is broken$") as raised:
            database.run("SELECT broken")
        assert not raised.value.is_refused
        with pytest.raises(SqlError) as raised:
            database.run("SELECT broken cast")
        assert raised.value.is_refused
    told = " ".join(text for asked in coordinator.asked for text in asked)
    assert all(f"USING {one}" in told for one in ("'it''s',5", "1,'x'", "2,NULL"))


@pytest.mark.parametrize("driver", ["mssql", "oracle", "trino"])
@pytest.mark.parametrize("answer", [None, b"", b"\0" * 99, b"HTTP/1.1 500 no\r\n\r\n"])
def test_who_does_not_speak_the_protocol_is_an_error_soon(
    driver: str, answer: bytes | None
) -> None:
    def serve(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(4096)
        connection.sendall(answer or b"")
        connection.close()

    began = time.monotonic()
    with raw_server(serve) as address:
        port = address.rpartition(":")[2] if answer is not None else "1"
        dsn = {
            "mssql": f"sqlserver://u:p@127.0.0.1:{port}?database=d",
            "oracle": f"oracle://u:p@127.0.0.1:{port}/s",
            "trino": f"http://u@127.0.0.1:{port}?catalog=c",
        }[driver]
        with pytest.raises(SqlError):
            Database(find_driver(driver), dsn, PoolBounds()).run("SELECT 1")
    assert time.monotonic() - began < 60


def test_dsns_of_go() -> None:
    mssql = parse_mssql_dsn("sqlserver://u:p%40@h:1434?database=d&encrypt=disable&app+name=x")
    assert (mssql["server"], mssql["port"], mssql["password"]) == ("h", "1434", "p@")
    assert (mssql["database"], mssql["encryption"], mssql["appname"]) == ("d", "off", "x")
    secured = parse_mssql_dsn("sqlserver://h?encrypt=true&TrustServerCertificate=true")
    assert secured["encryption"] == "require"
    oracle = parse_oracle_dsn("oracle://u:p@h/service?SSL=enable")
    assert (oracle["port"], oracle["service_name"]) == (1521, "service")
    assert (oracle["protocol"], oracle["ssl_server_dn_match"]) == ("tcps", True)
    assert parse_oracle_dsn("oracle://u:p@h:1/?SID=x")["sid"] == "x"
    trino = parse_trino_dsn("https://u:p@h?catalog=c&session_properties=a=1,b=2")
    assert (trino["port"], trino["http_scheme"], trino["catalog"]) == (443, "https", "c")
    assert trino["session_properties"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("driver", "dsn", "text"),
    [
        ("mssql", "server=h;user id=u", "the DSN is not as sqlserver://"),
        ("mssql", "sqlserver://h:99999", "99999"),
        ("mssql", "sqlserver://h/instance", "give its port"),
        ("mssql", "sqlserver://h?krb5-configfile=/etc/x", "krb5-configfile in the DSN"),
        ("mssql", "sqlserver://h?encrypt=true", "certificate is not verified"),
        ("mssql", "sqlserver://h?encrypt=strict", "expected true, false or disable"),
        ("oracle", "oracle://h", "names no service"),
        ("oracle", "oracle://h/s?wallet=/etc/x", "wallet in the DSN"),
        ("trino", "https://h", "names no user"),
        ("trino", "http://u:p@h", "https only"),
        ("trino", "https://u@h?SSLCertPath=/etc/x", "sslcertpath in the DSN"),
    ],
)
def test_a_dsn_that_cannot_be_followed_is_refused(driver: str, dsn: str, text: str) -> None:
    with pytest.raises(SqlError, match=text):
        find_driver(driver).engine(dsn)


def test_only_placeholders_of_sql_server_are_replaced() -> None:
    driver = MssqlDriver()
    raw = "SELECT '?''%', [a?], \"?\", @p1, ? /* ? */ FROM t -- ?"
    assert driver.to_raw(raw) == "SELECT '?''%%', [a?], \"?\", %s, %s /* ? */ FROM t -- ?"
    with pytest.raises(SqlError, match="in their order"):
        driver.to_raw("SELECT @p2, @p1")


def test_errors_of_values_are_told_by_their_numbers() -> None:
    mssql, oracle = MssqlDriver(), OracleDriver()
    error = Exception(2627, b"Violation of PRIMARY KEY.DB-Lib error message 20018, severity 14:\n")
    assert mssql.is_value_error(error)
    assert mssql.error_text(error) == "mssql: Violation of PRIMARY KEY."
    assert not mssql.is_value_error(Exception(208, b"Invalid object name"))
    told = Exception("ORA-01722: invalid number\nHelp: https://docs.oracle.com")
    assert oracle.is_value_error(told)
    assert oracle.error_text(told) == "ORA-01722: invalid number"
    assert not oracle.is_value_error(Exception("ORA-00942: no table"))


def test_values_of_rows_and_arguments() -> None:
    driver = StandardDriver()
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    given = [at, at.replace(tzinfo=None), at.date(), Decimal("1.50"), b"\xff", [b"a"], None, 1.5]
    assert [*map(driver.from_value, given)] == [
        "2026-01-02T03:04:05+01:00",
        "2026-01-02T03:04:05Z",
        "2026-01-02T00:00:00Z",
        "1.50",
        "\ufffd",
        ["a"],
        None,
        1.5,
    ]
    moment = datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)
    sent = driver.to_argument(Timestamp(int(moment.timestamp()) * 10**9 + 123_456_789))
    assert (sent, driver.to_argument(True), driver.to_argument("x")) == (moment, 1, "x")


@pytest.mark.parametrize(
    ("driver", "insert"),
    [
        ("mssql", "INSERT INTO t (a, b) VALUES (%s, %s)"),
        ("oracle", "INSERT INTO t (a, b) VALUES (:a0, :a1)"),
        ("trino", "INSERT INTO t (a, b) VALUES (?, ?)"),
    ],
)
def test_statements_have_the_placeholders_of_the_driver(driver: str, insert: str) -> None:
    dsn = {
        "mssql": "sqlserver://h?database=d",
        "oracle": "oracle://h/s",
        "trino": "https://u@h",
    }
    engine = find_driver(driver).engine(dsn[driver])
    statement: Any = InsertStatement("t", ["a", "b"]).statement_for([[1, 2]])
    compiled = statement.compile(dialect=engine.dialect)
    assert " ".join(str(compiled).split()) == insert
