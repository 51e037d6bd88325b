"""`amqp_1`, with a real RabbitMQ and its plugin, and with a stand-in for what that does not do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.amqp_1.connection import Amqp1Error
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port, skip_without
from tests.servers.amqp_1 import amqp_stand_in
from tests.servers.hostile import raw_server
from tests.servers.rabbitmq import rabbitmq_server

# The library is compiled, and no other tier has it.
pytestmark = pytest.mark.slow

_PLUGINS = ("rabbitmq_amqp1_0",)


@pytest.fixture(autouse=True, scope="module")
def library() -> None:
    try:
        import proton  # noqa: F401
    except ImportError:
        skip_without("proton", "pip install python-qpid-proton")


class Broker:
    """A RabbitMQ that can be killed and come back."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = lasting_port()
        self._running = ExitStack()
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}"

    def start(self) -> None:
        self._running.enter_context(rabbitmq_server(self._directory, self._port, _PLUGINS))

    def kill(self) -> None:
        self._running.close()


@pytest.fixture(scope="module")
def broker(library: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    one = Broker(tmp_path_factory.mktemp("rabbitmq"))
    one.start()
    yield one
    one.kill()


def config_of(url: str, fields: str) -> str:
    return f"amqp_1: {{urls: ['{url}'], {fields}}}"


def send(url: str, fields: str, *batch: Message) -> SendError | None:
    [error] = built(config_of(url, fields)).deliver([[*batch]], Seen().ex).errors
    return error


def reasons(error: SendError | None) -> dict[int, Reason | None]:
    if error is None:
        return {}
    return {
        index: text.reason if isinstance(text, Rejection) else None
        for index, text in error.errors.items()
    }


class TestRabbitmq:
    def test_properties_and_annotations_are_metadata(self, broker: Broker, tmp_path: Path) -> None:
        fields = (
            "target_address: /queue/round, persistent: true, "
            'application_properties_map: \'root = {"a": 1, "b": now()}\', '
            "message_properties_message_id: '${! @id }', message_properties_subject: s, "
            "message_properties_correlation_id: '12', message_properties_reply_to: r, "
            "message_properties_group_id: g, message_properties_group_sequence: '3', "
            "message_properties_user_id: guest, message_properties_content_type: text/plain, "
            "metadata: {exclude_prefixes: [no_, id]}"
        )
        meta = {"id": "0f0f0f0f-0000-4000-8000-000000000001", "no_this": 1, "x-a": "b", "x-n": 5}
        assert send(broker.url, fields, Message(b"x" * 300_000, meta), Message(b"", meta)) is None
        config = config_of(broker.url, "source_address: /queue/round, read_header: true")
        with receiving(tmp_path, config) as taken:
            assert [len(raw) for raw in taken.raws(2)] == [300_000, 0]
        found = dict(taken.messages[0].meta)
        assert found["amqp_message_id"] == meta["id"]
        assert {name: found.get(name) for name in _EXPECTED} == _EXPECTED
        assert "no_this" not in found and "id" not in found

    def test_a_text_is_a_payload_too(self, broker: Broker, tmp_path: Path) -> None:
        fields = "target_address: /queue/texts, content_type: string"
        batch = [Message("ü".encode()), Message(b"\xff"), Message(b"2")]
        assert reasons(send(broker.url, fields, *batch)) == {1: Reason.INVALID}
        config = config_of(broker.url, "source_address: /queue/texts")
        with receiving(tmp_path, config) as taken:
            assert taken.raws(2) == ["ü", "2"]

    def test_ten_thousand_messages_come_once_and_in_order(
        self, broker: Broker, tmp_path: Path
    ) -> None:
        batch = [Message(str(n).encode()) for n in range(10_000)]
        assert send(broker.url, "target_address: /queue/many", *batch) is None
        config = config_of(broker.url, "source_address: /queue/many, credit: 1000")
        with receiving(tmp_path / "a", config) as taken:
            assert taken.raws(10_000) == [str(n) for n in range(10_000)]
        # What was read is accepted, so that a new stream gets nothing of it.
        assert send(broker.url, "target_address: /queue/many", Message(b"new")) is None
        with receiving(tmp_path / "b", config) as taken:
            assert taken.raws(1) == ["new"]

    def test_a_message_that_is_too_large_is_rejected_alone(
        self, broker: Broker, tmp_path: Path
    ) -> None:
        batch = [Message(b"0"), Message(b"x" * 1_000_001), Message(b"2")]
        error = send(broker.url, "target_address: /queue/large", *batch)
        assert reasons(error) == {1: Reason.REFUSED} and "larger than configured" in str(error)
        with receiving(tmp_path, config_of(broker.url, "source_address: /queue/large")) as taken:
            taken.until(lambda messages: {one.raw for one in messages} == {b"0", b"2"})

    @pytest.mark.parametrize("user", ["guest:sesame", "nobody:sesame"])
    def test_credentials(self, broker: Broker, user: str) -> None:
        url = broker.url.replace("guest:guest", user)
        with pytest.raises(Amqp1Error, match="refuses the user or the password") as caught:
            built(config_of(url, "target_address: /queue/q")).probe()
        assert "sesame" not in str(caught.value)
        sasl = "target_address: /queue/q, sasl: {mechanism: plain, user: guest, password: guest}"
        assert built(config_of(url, sasl)).probe() == "the broker answers"

    def test_a_target_that_is_not_there(self, broker: Broker) -> None:
        from streamer.connectors.amqp_1.sender import SharedSender
        from streamer.sdk.spec import ParsedFields

        parsed: Any = ParsedFields({"urls": [broker.url], "url": None, "sasl": None})
        with pytest.raises(Amqp1Error, match="amqp:not-found|NOT_FOUND"):
            SharedSender(parsed, "/exchange/nowhere/k", ()).connect()

    def test_a_broker_that_is_killed_and_comes_back(self, broker: Broker, tmp_path: Path) -> None:
        output = built(config_of(broker.url, "target_address: /queue/q, persistent: true"))
        fields = "source_address: /queue/q"
        with receiving(tmp_path, config_of(broker.url, fields)) as taken:
            taken.counted("input_connection_up")
            assert output.deliver([[Message(b"a")]], Seen().ex).errors == [None]
            assert taken.raws(1) == ["a"]
            broker.kill()
            taken.counted("input_connection_lost")
            with pytest.raises(Amqp1Error):
                output.probe()
            broker.start()
            taken.counted("input_connection_up", 2)
            assert output.deliver([[Message(b"c")]], Seen().ex).errors == [None]
            # What was accepted just before it was killed may come again.
            taken.until(lambda messages: messages[-1].raw == b"c")
            assert {one.raw for one in taken.messages} == {b"a", b"c"}


_EXPECTED = {
    "amqp_content_type": "text/plain",
    "amqp_correlation_id": "12",
    "amqp_reply_to": "r",
    "amqp_user_id": "guest",
    "amqp_durable": "true",
    "x_a": "b",
}


class TestStandIn:
    def test_each_message_has_its_own_outcome(self) -> None:
        batch = [
            Message(b"0"),
            Message(b"release"),
            Message(b"amqp:invalid-field"),
            Message(b"amqp:resource-limit-exceeded"),
            Message(b"4"),
        ]
        with amqp_stand_in() as stand_in:
            url = f"amqp://{stand_in.url}"
            error = send(url, "target_address: q", *batch)
            assert reasons(error) == {1: None, 2: Reason.REFUSED, 3: None}
            assert stand_in.taken == [(None, b"0"), (None, b"4")]

    def test_a_message_may_have_an_address_of_its_own(self) -> None:
        fields = "message_properties_to: '${! @to }'"
        batch = [Message(b"0", {"to": "a"}), Message(b"release", {"to": "b"})]
        with amqp_stand_in() as stand_in:
            error = send(f"amqp://{stand_in.url}", fields, *batch)
            assert reasons(error) == {1: Reason.REFUSED}
            assert stand_in.taken == [("a", b"0")]

    def test_the_size_that_the_broker_takes(self) -> None:
        batch = [Message(b"0"), Message(b"x" * 2_000), Message(b"2")]
        with amqp_stand_in(max_bytes=1_000) as stand_in:
            error = send(f"amqp://{stand_in.url}", "target_address: q", *batch)
            assert reasons(error) == {1: Reason.TOO_LARGE}
            assert [body for _, body in stand_in.taken] == [b"0", b"2"]

    def test_a_message_that_ends_the_link_is_looked_for(self) -> None:
        batch = [Message(str(n).encode()) for n in range(20)]
        batch[7] = Message(b"end: 7")
        with amqp_stand_in() as stand_in:
            error = send(f"amqp://{stand_in.url}", "target_address: q", *batch)
            assert reasons(error) == {7: Reason.REFUSED} and "bad section" in str(error)
            assert {body for _, body in stand_in.taken} == {
                str(n).encode() for n in range(20) if n != 7
            }

    def test_what_no_message_can_be_made_of(self) -> None:
        fields = (
            "target_address: q, message_properties_group_sequence: '${! @g }', "
            "application_properties_map: 'root = @map'"
        )
        good = {"g": "4294967295", "map": {"a": 1 << 70, "b": [None, True, 1.5]}}
        batch = [
            Message(b"0", good),
            Message(b"1", {**good, "g": "4294967296"}),
            Message(b"2", {**good, "g": "-1"}),
            Message(b"3", {**good, "map": 5}),
            Message(b"4", good),
        ]
        with amqp_stand_in() as stand_in:
            error = send(f"amqp://{stand_in.url}", fields, *batch)
            assert reasons(error) == dict.fromkeys((1, 2, 3), Reason.INVALID)
            assert [body for _, body in stand_in.taken] == [b"0", b"4"]

    def test_garbage_is_rejected_and_stops_no_other_message(self, tmp_path: Path) -> None:
        import proton

        structured = proton.Message(body={"a": [1, None], "b": proton.symbol("c")})
        encoded = [
            proton.Message(body=b"0").encode(),
            b"\xff\xfe garbage",
            structured.encode(),
            proton.Message(body=b"3").encode(),
        ]
        with amqp_stand_in(encoded) as stand_in:
            config = config_of(f"amqp://{stand_in.url}", "source_address: q, credit: 10")
            with receiving(tmp_path, config) as taken:
                assert taken.raws(3) == ["0", '{"a":[1,null],"b":"c"}', "3"]
                taken.until(lambda _: len(stand_in.outcomes) == 4)
            assert sorted(stand_in.outcomes) == ["accepted"] * 3 + ["rejected"]
            assert any("rejects a message" in line for line in map(str, taken.lodged.log))


def test_a_server_that_speaks_something_else() -> None:
    def answer(connection: Any, over: Any) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)

    with raw_server(answer) as address, pytest.raises(Amqp1Error):
        built(config_of(f"amqp://{address}", "target_address: q")).probe()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("target_address: q", "urls is missing; expected a URL such as amqp://"),
        ("urls: ['http://a'], target_address: q", "no URL of AMQP"),
        ("urls: ['amqp://a?x=1'], target_address: q", "has parameters"),
        ("urls: ['amqp://a'], target_address: q, tls: {enabled: true}", "has no TLS; use amqps"),
        ("urls: ['amqp://a']", "set it, or message_properties_to"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"output: {{amqp_1: {{{fields}}}}}\n")
