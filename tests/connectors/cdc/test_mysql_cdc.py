"""`mysql_cdc`, with a real MariaDB."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.cdc.mysql_tables import MysqlConnection
from streamer.connectors.sql.mysql_dsn import connect_arguments
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from tests.components.inputs.landing import receiving
from tests.components.inputs.reading import built
from tests.connectors.cdc.receiver import garbage_server, kill_receivers
from tests.servers.mariadb import mariadb_data

_NUMBERS = itertools.count()


class Database:
    """A table of a server that no other test uses."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.table = f"cdc_{next(_NUMBERS)}"

    def run(self, *statements: str) -> Any:
        connection = MysqlConnection(connect_arguments(self.dsn))
        try:
            for statement in statements:
                rows = connection.run(statement.replace("$T", self.table))
            return rows
        finally:
            connection.close()

    def config(self, snapshot: bool = False, more: str = "") -> str:
        return (
            f"mysql_cdc: {{dsn: '{self.dsn}', tables: [{self.table}], "
            f"stream_snapshot: {str(snapshot).lower()}, {more}}}"
        )


@pytest.fixture
def db(mysql_dsn: str) -> Database:
    made = Database(mysql_dsn)
    made.run("CREATE TABLE $T (id integer PRIMARY KEY, name text)")
    return made


def told(message: Message) -> tuple[Any, Any]:
    return message.meta["operation"], json.loads(message.raw)


def numbers(messages: list[Message]) -> list[int]:
    return [json.loads(one.raw)["id"] for one in messages]


@pytest.mark.slow
def test_a_snapshot_and_then_changes(db: Database, tmp_path: Path) -> None:
    db.run("INSERT INTO $T SELECT seq, concat('n', seq) FROM seq_1_to_2500")
    with receiving(tmp_path, db.config(True)) as taken:
        taken.until(lambda found: len(found) == 2500)
        db.run(
            "INSERT INTO $T VALUES (9001, 'x')",
            "UPDATE $T SET name = 'y' WHERE id = 9001",
            "ALTER TABLE $T ADD more integer DEFAULT 5, DROP name",
            "DELETE FROM $T WHERE id = 9001",
        )
        messages = taken.until(lambda found: len(found) == 2503)
    assert [told(one) for one in messages[:2500]] == [
        ("read", {"id": n, "name": f"n{n}"}) for n in range(1, 2501)
    ]
    assert dict(messages[0].meta) == {"table": db.table, "operation": "read"}
    assert [told(one) for one in messages[2500:]] == [
        ("insert", {"id": 9001, "name": "x"}),
        ("update", {"id": 9001, "name": "y"}),
        ("delete", {"id": 9001, "more": 5}),
    ]
    assert messages[2500].meta["binlog_position"].startswith("binlog.0")


@pytest.mark.slow
def test_values_of_types_are_those_of_connect(db: Database, tmp_path: Path) -> None:
    values = {
        "a tinyint": ("-3", -3),
        "b bigint unsigned": ("18446744073709551615", 18446744073709551615),
        "c float": ("0.1", 0.1),
        "d float": ("16777216", 16777216),
        "e decimal(10,2)": ("1.5", "1.50"),
        "f double": ("1e100", 1e100),
        "g blob": ("x'00ff'", "AP8="),
        "h date": ("'2024-02-29'", "2024-02-29T00:00:00Z"),
        "i datetime(2)": ("'2024-02-29 01:02:03.40'", "2024-02-29T01:02:03.4Z"),
        "j timestamp": ("'2024-02-29 01:02:03'", "2024-02-29T01:02:03Z"),
        "k set('x','y','z')": ("'z,x'", ["x", "z"]),
        "l set('x','y')": ("''", []),
        "m enum('p','q')": ("'q'", "q"),
        "n bit(10)": ("b'1000000001'", 513),
        "o time": ("'-100:02:03'", "-100:02:03"),
        "p year": ("2024", 2024),
        "q varchar(10) charset latin1": ("'é'", "é"),
        "r varbinary(4)": ("x'ff00'", "/wA="),
        "s text": ("''", ""),
        "t text": ("NULL", None),
        "u longtext charset utf8mb4": ("'ü😀'", "ü😀"),
        "v mediumint unsigned": ("16777215", 16777215),
    }
    columns, written = ", ".join(values), ", ".join(text for text, _ in values.values())
    db.run("DROP TABLE $T", f"CREATE TABLE $T (id integer PRIMARY KEY, {columns})")
    db.run(f"INSERT INTO $T VALUES (1, {written})")
    with receiving(tmp_path, db.config(True)) as taken:
        taken.until(bool)
        db.run(f"INSERT INTO $T VALUES (2, {written})")
        messages = taken.until(lambda found: len(found) == 2)
    expected = {name.split()[0]: value for name, (_, value) in values.items()}
    assert json.loads(messages[0].raw) == {"id": 1, **expected}
    assert json.loads(messages[1].raw) == {"id": 2, **expected}


@pytest.mark.slow
def test_a_killed_program_has_each_change_once(db: Database, tmp_path: Path) -> None:
    made = 0

    def work() -> None:
        nonlocal made
        # One transaction that is spooled in parts, and small ones.
        for rows in (7_000, 1, 3):
            db.run(f"INSERT INTO $T SELECT seq, 'x' FROM seq_{made + 1}_to_{made + rows}")
            made += rows

    kill_receivers(tmp_path, db.config(), 4, work)
    with receiving(tmp_path, db.config()) as taken:
        work()
        found = taken.until(lambda messages: len(messages) >= made)
    assert numbers(found) == list(range(1, made + 1))


@pytest.mark.slow
def test_an_interrupted_snapshot_goes_on_where_it_was(db: Database, tmp_path: Path) -> None:
    db.run("INSERT INTO $T SELECT seq, '' FROM seq_1_to_30000")
    config = db.config(True, "snapshot_max_batch_size: 500")
    kill_receivers(tmp_path, config, 1)
    db.run("DELETE FROM $T WHERE id = 1", "INSERT INTO $T VALUES (30001, '')")
    with receiving(tmp_path, config) as taken:
        found = taken.until(
            lambda messages: {"insert", "delete"} <= {one.meta["operation"] for one in messages}
        )
    rows = [one for one in found if one.meta["operation"] == "read"]
    assert numbers(rows)[:30_000] == list(range(1, 30_001))
    # The new row is a part of the second snapshot where it came before its end.
    assert numbers(rows)[30_000:] in ([], [30_001])
    assert [told(one) for one in found[len(rows) :]] == [
        ("delete", {"id": 1, "name": ""}),
        ("insert", {"id": 30_001, "name": ""}),
    ]


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back_and_deletes_its_log(tmp_path: Path) -> None:
    with mariadb_data() as data:
        db = Database(data.dsn)
        with data.server() as server:
            db.run("CREATE TABLE $T (id integer PRIMARY KEY)")
            with receiving(tmp_path, db.config()) as taken:
                taken.counted("input_connection_up")
                taken.until(lambda _: "Binlog Dump" in str(db.run("SHOW PROCESSLIST")))
                db.run("INSERT INTO $T SELECT seq FROM seq_1_to_10000")
                taken.until(lambda messages: len(messages) == 10_000)
                server.kill()
                server.wait()
                taken.counted("input_connection_lost")
                with data.server():
                    db.run("INSERT INTO $T VALUES (10001)")
                    found = taken.until(lambda messages: len(messages) >= 10_001)
                    assert numbers(found) == list(range(1, 10_002))
        with data.server():
            db.run("FLUSH BINARY LOGS", "INSERT INTO $T VALUES (10002)", "FLUSH BINARY LOGS")
            [(last, _, *_)] = db.run("SHOW MASTER STATUS")
            db.run(f"PURGE BINARY LOGS TO '{last}'")
            with receiving(tmp_path, db.config()) as taken:
                taken.counted("input_connection_lost")
                assert "the changes since then cannot be read" in taken.lodged.log[-1][1]


@pytest.mark.slow
def test_what_the_server_lacks_is_named(db: Database) -> None:
    def probe(config: str) -> str:
        with pytest.raises(StreamerError) as caught:
            built(f"input: {{{config}}}").probe()
        assert "secret" not in str(caught.value)
        return str(caught.value)

    assert "its binary log ends at binlog.0" in built(f"input: {{{db.config()}}}").probe()
    assert "there is no table" in probe(db.config().replace("cdc_", "no_"))
    assert "Access denied" in probe(db.config().replace("streamer:secret", "streamer:secret2"))
    db.run("ALTER TABLE $T DROP PRIMARY KEY")
    assert "has no primary key" in probe(db.config(True))


def test_a_server_of_another_kind_and_fields_that_cannot_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected one table"):
        built("input: {mysql_cdc: {dsn: 'u:p@tcp(h:1)/d', tables: [], stream_snapshot: true}}")
    fields = "tables: [t], stream_snapshot: false, aws: {enabled: true}"
    with pytest.raises(ConfigError, match="put a user with a password into dsn"):
        built(f"input: {{mysql_cdc: {{dsn: 'u:p@tcp(h:1)/d', {fields}}}}}")
    with garbage_server(b"\x4a\x00\x00\x00\x0a" + b"\xff" * 5_000) as port:
        dsn = f"u:secret@tcp(127.0.0.1:{port})/d"
        config = f"mysql_cdc: {{dsn: '{dsn}', tables: [t], stream_snapshot: false}}"
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_failed")
        assert "secret" not in str(taken.lodged.log)
