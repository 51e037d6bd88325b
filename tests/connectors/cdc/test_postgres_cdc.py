"""`postgres_cdc`, with a real server."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.cdc.postgres_connection import PostgresConnection
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from tests.components.inputs.landing import Taken, receiving
from tests.components.inputs.reading import built
from tests.connectors.cdc.receiver import garbage_server, kill_receivers
from tests.servers.postgres import GUARDED, postgres_cluster

_NUMBERS = itertools.count()


class Database:
    """A table of a server that no other test uses, and its slot."""

    def __init__(self, dsn: str) -> None:
        from psycopg.conninfo import conninfo_to_dict

        self.dsn = dsn
        self.table = self.slot = f"cdc_{next(_NUMBERS)}"
        self._settings = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}

    def run(self, *statements: str) -> Any:
        connection = PostgresConnection(self._settings)
        try:
            for statement in statements:
                rows = connection.run(statement.replace("$T", self.table))
            return rows.texts()
        finally:
            connection.close()

    def config(self, more: str = "", table: str = "") -> str:
        return (
            f"postgres_cdc: {{dsn: '{self.dsn}', schema: public, tables: ['{table or self.table}'],"
            f" slot_name: {self.slot}, {more}}}"
        )

    def drop(self) -> None:
        self.run(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
            f"WHERE slot_name = '{self.slot}' AND active",
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            f"WHERE slot_name = '{self.slot}'",
        )


@pytest.fixture
def db(postgres_dsn: str) -> Iterator[Database]:
    made = Database(postgres_dsn)
    made.run("CREATE TABLE $T (id integer PRIMARY KEY, name text)")
    yield made
    made.drop()


def told(message: Message) -> tuple[Any, Any]:
    return message.meta["operation"], json.loads(message.raw)


def streams(taken: Taken, db: Database) -> None:
    """Wait until changes are read."""
    query = (
        "SELECT 1 FROM pg_stat_replication JOIN pg_replication_slots ON pid = active_pid "
        f"WHERE slot_name = '{db.slot}' AND state = 'streaming'"
    )
    taken.until(lambda _: bool(db.run(query)))


@pytest.mark.slow
def test_a_snapshot_and_then_changes(db: Database, tmp_path: Path) -> None:
    db.run("INSERT INTO $T SELECT n, 'n' || n FROM generate_series(1, 2500) n")
    config = db.config("stream_snapshot: true, include_transaction_markers: true")
    with receiving(tmp_path, config) as taken:
        streams(taken, db)
        db.run(
            "INSERT INTO $T VALUES (9001, 'x')",
            "UPDATE $T SET name = 'y' WHERE id = 9001",
            "DELETE FROM $T WHERE id = 9001",
            "TRUNCATE $T",
        )
        messages = taken.until(lambda found: len(found) == 2512)
    assert [told(one) for one in messages[:2500]] == [
        ("read", {"id": n, "name": f"n{n}"}) for n in range(1, 2501)
    ]
    assert dict(messages[0].meta) == {"table": db.table, "operation": "read"}
    assert [told(one) for one in messages[2500:]] == [
        ("begin", None),
        ("insert", {"id": 9001, "name": "x"}),
        *(("commit", None), ("begin", None)),
        ("update", {"id": 9001, "name": "y"}),
        *(("commit", None), ("begin", None)),
        ("delete", {"id": 9001, "name": None}),
        *(("commit", None), ("begin", None)),
        ("truncate", None),
        ("commit", None),
    ]
    deleted = messages[2507].meta
    assert deleted["before"] == {"id": 9001, "name": None} and deleted["table"] == db.table
    assert int(deleted["commit_ts_ms"]) > 1_700_000_000_000 and "/" in deleted["lsn"]


@pytest.mark.slow
def test_values_of_types_are_those_of_connect(db: Database, tmp_path: Path) -> None:
    values = {
        "a smallint": ("-3", -3),
        "b bigint": ("9007199254740993", 9007199254740993),
        "c real": ("0.1", 0.1),
        "d double precision": ("'NaN'", "NaN"),
        "e numeric(10,2)": ("1.5", "1.50"),
        "f boolean": ("true", True),
        "g bytea": ("'\\x00ff'", "AP8="),
        "h date": ("'2024-02-29'", "2024-02-29T00:00:00Z"),
        "i timestamp": ("'2024-02-29 01:02:03.40'", "2024-02-29T01:02:03.4Z"),
        "j timestamptz": ("'2024-02-29 01:02:03+02'", "2024-02-28T23:02:03Z"),
        "k timestamptz": ("'infinity'", None),
        "l jsonb": ("""'{"a": [1, null]}'""", {"a": [1, None]}),
        "m uuid": (
            "'00000000-0000-0000-0000-000000000001'",
            "00000000-0000-0000-0000-000000000001",
        ),
        "n integer[]": ("'{1,NULL,3}'", [1, None, 3]),
        "o text[]": ("""'{{"a b",NULL},{"q\\"u",""}}'""", [["a b", None], ['q"u', ""]]),
        "p inet": ("'10.0.0.1'", "10.0.0.1/32"),
        "q interval": ("'1 day 2 hours'", "1 day 02:00:00"),
        "r time": ("'01:02:03'", "01:02:03"),
        "s text": ("''", ""),
        "t text": ("NULL", None),
    }
    columns, written = ", ".join(values), ", ".join(text for text, _ in values.values())
    # Two rows, of which one is read in the snapshot and one as a change.
    db.run("DROP TABLE $T", f"CREATE TABLE $T (id integer PRIMARY KEY, {columns})")
    db.run(f"INSERT INTO $T VALUES (1, {written})")
    with receiving(tmp_path, db.config("stream_snapshot: true")) as taken:
        streams(taken, db)
        db.run(f"INSERT INTO $T VALUES (2, {written})")
        messages = taken.until(lambda found: len(found) == 2)
    expected = {name.split()[0]: value for name, (_, value) in values.items()}
    assert [json.loads(one.raw) for one in messages] == [
        {"id": 1, **expected},
        {"id": 2, **expected},
    ]


@pytest.mark.slow
def test_large_values_that_stay_and_columns_that_come(db: Database, tmp_path: Path) -> None:
    long = "repeat(md5(random()::text), 300)"
    db.run("ALTER TABLE $T ADD big text, ADD n integer")
    db.run("ALTER TABLE $T ALTER big SET STORAGE EXTERNAL")
    with receiving(tmp_path, db.config("unchanged_toast_value: same")) as taken:
        streams(taken, db)
        db.run(f"INSERT INTO $T VALUES (1, 'a', {long}, 0)", "UPDATE $T SET n = 1")
        db.run("ALTER TABLE $T REPLICA IDENTITY FULL", "UPDATE $T SET n = 2")
        db.run("ALTER TABLE $T DROP name, ADD more integer DEFAULT 5", "UPDATE $T SET n = 3")
        found = taken.until(lambda messages: len(messages) == 4)
    rows = [json.loads(one.raw) for one in found]
    big = rows[0]["big"]
    assert len(big) == 9_600
    assert rows[1:] == [
        {"id": 1, "name": "a", "big": "same", "n": 1},
        {"id": 1, "name": "a", "big": big, "n": 2},
        {"id": 1, "big": big, "n": 3, "more": 5},
    ]
    assert "before" not in found[1].meta
    assert found[2].meta["before"] == {"id": 1, "name": "a", "big": big, "n": 1}


def numbers(messages: list[Message]) -> list[int]:
    return [json.loads(one.raw)["id"] for one in messages]


@pytest.mark.slow
def test_a_killed_program_has_each_change_once(db: Database, tmp_path: Path) -> None:
    config = db.config("include_transaction_markers: false")
    made = 0

    def work() -> None:
        nonlocal made
        for rows in (7_000, 1, 3):
            db.run(f"INSERT INTO $T SELECT n FROM generate_series({made + 1}, {made + rows}) n")
            made += rows

    kill_receivers(tmp_path, config, 4, work)
    with receiving(tmp_path, config) as taken:
        found = taken.until(lambda messages: len(messages) >= made)
        work()
        found = taken.until(lambda messages: len(messages) >= made)
    assert numbers(found) == list(range(1, made + 1))


@pytest.mark.slow
def test_an_interrupted_snapshot_goes_on_where_it_was(db: Database, tmp_path: Path) -> None:
    db.run("INSERT INTO $T SELECT n FROM generate_series(1, 30000) n")
    config = db.config("stream_snapshot: true, snapshot_batch_size: 500")
    kill_receivers(tmp_path, config, 1)
    db.run("DELETE FROM $T WHERE id = 1", "INSERT INTO $T VALUES (30001)")
    with receiving(tmp_path, config) as taken:
        found = taken.until(
            lambda messages: {"insert", "delete"} <= {one.meta["operation"] for one in messages}
        )
    rows = [one for one in found if one.meta["operation"] == "read"]
    assert numbers(rows)[:30_000] == list(range(1, 30_001))
    # The new row is a part of the second snapshot where it came before its end.
    assert numbers(rows)[30_000:] in ([], [30_001])
    assert [told(one) for one in found[len(rows) :]] == [
        ("delete", {"id": 1, "name": None}),
        ("insert", {"id": 30_001, "name": None}),
    ]


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    with postgres_cluster() as cluster:
        db = Database(cluster.dsn)
        with receiving(tmp_path, db.config()) as taken:
            with cluster.server() as server:
                db.run("CREATE TABLE $T (id integer PRIMARY KEY)")
                streams(taken, db)
                db.run("INSERT INTO $T SELECT n FROM generate_series(1, 10000) n")
                # As after a crash, which is what it is to it at the next start.
                server.send_signal(signal.SIGQUIT)
                server.wait()
            taken.counted("input_connection_lost")
            assert "no error details" not in str(taken.lodged.log)
            with cluster.server() as server:
                db.run("INSERT INTO $T VALUES (10001)")
                found = taken.until(lambda messages: len(messages) >= 10_001)
                assert numbers(found) == list(range(1, 10_002))
                # It ends though a slot is read, since its log is confirmed to the end.
                server.send_signal(signal.SIGINT)
                server.wait(30)


@pytest.mark.slow
def test_a_gap_is_an_error(db: Database, tmp_path: Path) -> None:
    with receiving(tmp_path / "a", db.config()) as taken:
        streams(taken, db)
        db.run("INSERT INTO $T VALUES (1)")
        assert numbers(taken.until(bool)) == [1]
    copy = tmp_path / "older"
    shutil.copytree(tmp_path / "a", copy)
    with receiving(tmp_path / "a", db.config()) as taken:
        db.run("INSERT INTO $T VALUES (2)")
        assert numbers(taken.until(lambda found: len(found) > 1)) == [1, 2]
    # What an older copy of the checkpoint lacks is not at the server any more.
    with receiving(copy, db.config()) as taken:
        taken.counted("input_connection_failed")
        assert "was read up to" in taken.lodged.log[-1][1]
    # Another checkpoint goes on where the slot is, and has no snapshot.
    db.run("INSERT INTO $T VALUES (3)")
    with receiving(tmp_path / "b", db.config("stream_snapshot: true")) as taken:
        assert numbers(taken.until(bool)) == [3]
    db.drop()
    with receiving(tmp_path / "b", db.config()) as taken:
        taken.counted("input_connection_failed")
        assert f"the slot {db.slot} is gone, and the checkpoint" in taken.lodged.log[-1][1]


@pytest.mark.slow
def test_a_temporary_slot_goes_with_its_connection(db: Database, tmp_path: Path) -> None:
    db.run("INSERT INTO $T VALUES (1)")
    for number in (1, 2):
        config = db.config("temporary_slot: true, stream_snapshot: true")
        with receiving(tmp_path, config) as taken:
            found = taken.until(lambda messages: len(messages) >= number)  # noqa: B023
        assert numbers(found) == [1] * number
        assert db.run(f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{db.slot}'") == []


@pytest.mark.slow
def test_what_the_server_lacks_is_named(db: Database) -> None:
    def probe(config: str) -> Any:
        with pytest.raises(StreamerError) as caught:
            built(f"input: {{{config}}}").probe()
        return str(caught.value)

    assert built(f"input: {{{db.config()}}}").probe().endswith(f"the slot {db.slot} will be made")
    assert "does not exist" in probe(db.config(table="nothing"))
    db.run("CREATE TABLE ${T}_k (id integer)".replace("${T}", db.table))
    assert "has no primary key" in probe(db.config("stream_snapshot: true", f"{db.table}_k"))
    assert 'role "nobody" does not exist' in probe(db.config().replace("streamer@", "nobody:s3@"))
    assert "s3" not in probe(db.config().replace("streamer@", "nobody:s3@"))


@pytest.mark.slow
def test_a_password_that_is_wrong(db: Database, tmp_path: Path) -> None:
    db.run(f"CREATE ROLE {GUARDED} LOGIN SUPERUSER PASSWORD 'r1ght-pass'")
    wrong = db.config().replace("streamer@", f"{GUARDED}:wr0ng-pass@")
    with pytest.raises(StreamerError, match="password authentication failed") as caught:
        built(f"input: {{{wrong}}}").probe()
    assert "wr0ng" not in str(caught.value)
    right = db.config().replace("streamer@", f"{GUARDED}:r1ght-pass@")
    assert built(f"input: {{{right}}}").probe().endswith(f"the slot {db.slot} will be made")
    with receiving(tmp_path, right) as taken:
        streams(taken, db)


@pytest.mark.slow
def test_messages_come_in_batches(db: Database, tmp_path: Path) -> None:
    with receiving(tmp_path, db.config("batching: {count: 3}")) as taken:
        streams(taken, db)
        db.run("INSERT INTO $T SELECT n FROM generate_series(1, 6) n")
        assert numbers(taken.until(lambda found: len(found) == 6)) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("greeting", [b"", b"\x00" * 64, b"N" + b"\xff" * 5_000])
def test_a_server_of_another_kind(tmp_path: Path, greeting: bytes) -> None:
    with garbage_server(greeting) as port:
        dsn = f"postgres://u:secret@127.0.0.1:{port}/d"
        config = f"postgres_cdc: {{dsn: '{dsn}', schema: s, tables: [t], slot_name: s}}"
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_failed")
        assert "secret" not in str(taken.lodged.log)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("slot_name: Big", "lower-case letters"),
        ("slot_name: s, tables: ['a b']", "in double quotes"),
        ("slot_name: s, aws: {enabled: true}", "put a user with a password into dsn"),
        ("slot_name: s, snapshot_batch_size: 0", "expected 1 to"),
        ("slot_name: s, tls: {enabled: true, root_cas: x}", "root_cas_file"),
    ],
)
def test_fields_that_cannot_work_are_refused(fields: str, text: str) -> None:
    given = "" if "tables" in fields else "tables: [t], "
    with pytest.raises(ConfigError, match=text):
        built(f"input: {{postgres_cdc: {{dsn: 'postgres://h/d', schema: s, {given}{fields}}}}}")


@pytest.mark.slow
def test_a_row_that_is_larger_than_a_block(db: Database, tmp_path: Path) -> None:
    with receiving(tmp_path, db.config()) as taken:
        streams(taken, db)
        db.run("INSERT INTO $T SELECT n, repeat('x', 12000000) FROM generate_series(1, 2) n")
        found = taken.until(lambda messages: len(messages) == 2)
    assert [len(one.raw) for one in found] == [12_000_018] * 2
