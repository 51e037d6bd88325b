"""`cassandra`, with a real one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.cassandra.client_fields import split_addresses
from streamer.connectors.cassandra.session import CassandraError
from streamer.core.errors import ConfigError
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port
from tests.servers.cassandra import cassandra_server
from tests.servers.hostile import raw_server

_LOGIN = "password_authenticator: {enabled: true, username: cassandra, password: cassandra}"


class Node:
    """A node that can be killed and come back."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.port = lasting_port()
        self._running = ExitStack()

    def start(self) -> None:
        self._running.enter_context(cassandra_server(self._directory, self.port))

    def kill(self) -> None:
        self._running.close()


def run_statement(node: Node, *statements: str) -> list[Any]:
    """Run statements by a session of the suite's own; return the rows of the last."""
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import Cluster

    login = PlainTextAuthProvider("cassandra", "cassandra")
    cluster = Cluster([("127.0.0.1", node.port)], auth_provider=login, connect_timeout=20)
    try:
        session = cluster.connect()
        session.default_timeout = 60
        rows: list[Any] = []
        for one in statements:
            rows = list(session.execute(one))
        return rows
    finally:
        cluster.shutdown()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    one = Node(tmp_path_factory.mktemp("cassandra"))
    one.start()
    run_statement(
        one,
        "CREATE KEYSPACE shop WITH replication = "
        "{'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE shop.orders (id int PRIMARY KEY, t text, at timestamp, f float, d decimal, "
        "u uuid, b blob, l list<int>, s set<text>, m map<text, double>, n bigint, o boolean)",
        "CREATE TABLE shop.many (id int PRIMARY KEY, t text)",
    )
    yield one
    one.kill()


def config_of(node: Node, fields: str, login: str = _LOGIN) -> str:
    return f"cassandra: {{addresses: ['127.0.0.1:{node.port}'], timeout: 60s, {login}, {fields}}}"


_INSERT = "query: 'INSERT INTO shop.many (id, t) VALUES (?, ?)', args_mapping: 'root = this'"


def send(node: Node, fields: str, *batch: Message) -> SendError | None:
    [error] = built(config_of(node, fields)).deliver([[*batch]], Seen().ex).errors
    return error


def reasons(error: SendError | None) -> dict[int, Reason | None]:
    if error is None:
        return {}
    return {
        index: text.reason if isinstance(text, Rejection) else None
        for index, text in error.errors.items()
    }


@pytest.mark.slow
class TestCassandra:
    def test_values_of_all_kinds_come_back(self, node: Node, tmp_path: Path) -> None:
        document = {
            "id": 1,
            "t": {"a": "ü"},
            "at": "2026-01-02T03:04:05.678Z",
            "f": 1.5,
            "d": "12.50",
            "u": "0f0f0f0f-0000-4000-8000-000000000001",
            "b": "raw",
            "l": [3, 1],
            "s": ["x"],
            "m": {"k": 2},
            "n": 1 << 40,
            "o": True,
        }
        names = ", ".join(document)
        query = f"INSERT INTO shop.orders ({names}) VALUES ({', '.join('?' * len(document))})"
        mapping = "root = [" + ", ".join(f"this.{name}" for name in document) + "]"
        fields = f"query: '{query}', args_mapping: '{mapping}'"
        assert send(node, fields, _message(document), _message({"id": 2, "at": 1.5})) is None
        with receiving(tmp_path, config_of(node, "query: SELECT * FROM shop.orders")) as taken:
            rows = {row["id"]: row for row in map(parse_json, map(str.encode, taken.raws(2)))}
        assert rows[1] == {**document, "t": '{"a":"ü"}', "b": "cmF3"}
        assert rows[2] == {**dict.fromkeys(document), "id": 2, "at": "1970-01-01T00:00:01.5Z"}

    def test_ten_thousand_rows_are_read_once(self, node: Node, tmp_path: Path) -> None:
        batch = [_message([n, str(n)]) for n in range(10_000)]
        fields = f"{_INSERT}, batching: {{count: 200}}, max_in_flight: 4, logged_batch: false"
        assert send(node, fields, *batch) is None
        config = config_of(node, "query: SELECT t FROM shop.many")
        with receiving(tmp_path, config) as taken:
            raws = taken.raws(10_000)
            taken.until(lambda _: not taken.lodged.house.threads[0].is_alive())
        assert sorted(raws) == sorted(f'{{"t":"{n}"}}' for n in range(10_000))
        # The input has ended: another start reads nothing again.
        with receiving(tmp_path, config) as taken:
            assert len(taken.raws(10_000)) == 10_000

    def test_messages_that_are_to_blame_are_rejected_alone(self, node: Node) -> None:
        batch = [
            _message([-1, "a"]),
            _message(["x", "b"]),
            _message([-3]),
            _message([1 << 40, "d"]),
            _message({"no": "array"}),
            Message(b"no JSON"),
            _message([None, "null in the key"]),
            _message([-8, "x" * 1_000_000]),
            _message([-9, "i"]),
        ]
        error = send(node, _INSERT, *batch)
        assert reasons(error) == {
            **dict.fromkeys((1, 2, 3, 4, 5), Reason.INVALID),
            6: Reason.REFUSED,
        }
        rows = run_statement(node, "SELECT id FROM shop.many WHERE id IN (-1, -3, -8, -9)")
        assert sorted(row.id for row in rows) == [-9, -8, -1]

    @pytest.mark.parametrize("user", ["cassandra", "nobody"])
    def test_credentials(self, node: Node, user: str) -> None:
        login = f"password_authenticator: {{enabled: true, username: {user}, password: sesame}}"
        with pytest.raises(CassandraError, match="refuses the user or the password") as caught:
            built(config_of(node, _INSERT, login)).probe()
        assert "sesame" not in str(caught.value)
        assert built(config_of(node, _INSERT)).probe() == "the cluster answers"

    def test_a_query_that_cannot_be(self, node: Node, tmp_path: Path) -> None:
        with receiving(tmp_path, config_of(node, "query: SELECT * FROM shop.nowhere")) as taken:
            taken.counted("input_connection_lost")
            assert any("nowhere" in line for line in map(str, taken.lodged.log))

    def test_a_node_that_is_killed_and_comes_back(self, node: Node) -> None:
        output = built(config_of(node, f"{_INSERT}, reconnect_interval: 100ms"))
        assert output.deliver([[_message([-20, "a"])]], Seen().ex).errors == [None]
        node.kill()
        with pytest.raises(CassandraError):
            output.probe()
        node.start()
        # What fails is sent again, as a stream does it, until the driver has found the node.
        until = time.monotonic() + 60
        while output.deliver([[_message([-21, "b"])]], Seen().ex).errors != [None]:
            assert time.monotonic() < until, "the node answers, and is not found"
            time.sleep(0.2)
        rows = run_statement(node, "SELECT id FROM shop.many WHERE id IN (-20, -21)")
        assert sorted(row.id for row in rows) == [-21, -20]


def _message(document: Any) -> Message:
    from streamer.core.json.dump import dump_json

    return Message(dump_json(document))


def test_a_server_that_speaks_something_else() -> None:
    def answer(connection: Any, over: Any) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with raw_server(answer) as address, pytest.raises(CassandraError):
        built(f"cassandra: {{addresses: ['{address}'], {_INSERT}}}").probe()


def test_addresses() -> None:
    given = ["a:1, b", "[::1]:2", "::1", ""]
    assert split_addresses(given) == [("a", 1), ("b", 9042), ("::1", 2), ("::1", 9042)]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("addresses: []", "is an empty list"),
        ("addresses: ['a:b']", "'a:b' is no address"),
        ("addresses: [a], host_selection_policy: {local_rack: r}", "needs local_dc"),
        ("addresses: [a], password_authenticator: {enabled: true}", "the login is enabled"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"output: {{cassandra: {{{fields}, {_INSERT}}}}}\n")
