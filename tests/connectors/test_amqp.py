"""`amqp_0_9`, with a real RabbitMQ."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.amqp.connection import AmqpError
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port
from tests.servers.hostile import raw_server
from tests.servers.rabbitmq import rabbitmq_server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rabbitmq_server(tmp_path_factory.mktemp("rabbitmq")) as address:
        yield f"amqp://guest:guest@{address}/"


def ask(url: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Do something with a channel of the suite's own."""
    import aiormq

    async def run() -> Any:
        connection = await aiormq.connect(url)
        try:
            return await work(await connection.channel())
        finally:
            await connection.close()

    return asyncio.run(run())


def make_queue(url: str, name: str, **arguments: Any) -> None:
    ask(url, lambda channel: channel.queue_declare(name, durable=True, arguments=arguments))


def take_all(url: str, queue: str) -> list[bytes]:
    async def take(channel: Any) -> list[bytes]:
        taken = []
        while (
            one := await channel.basic_get(queue, no_ack=True)
        ).delivery.name != "Basic.GetEmpty":
            taken.append(bytes(one.body))
        return taken

    taken: list[bytes] = ask(url, take)
    return taken


def config_of(url: str, fields: str) -> str:
    return f"amqp_0_9: {{urls: ['{url}'], {fields}}}"


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


@pytest.mark.slow
class TestRoundTrip:
    def test_headers_and_properties_are_metadata(self, broker: str, tmp_path: Path) -> None:
        fields = (
            "queue: round, queue_declare: {enabled: true, arguments: {x-max-length: 1000}}, "
            "bindings_declare: [{exchange: orders, key: 'orders.#'}], consumer_tag: me"
        )
        out = (
            "exchange: orders, exchange_declare: {enabled: true, type: topic}, "
            "key: 'orders/${! @kind }', type: a/b, priority: '3', persistent: true, "
            "message_id: '${! @kind }', correlation_id: c, reply_to: r, app_id: x, "
            "content_type: text/plain, content_encoding: utf-8, user_id: guest, "
            "metadata: {exclude_prefixes: [no_]}"
        )
        meta = {"kind": "new", "no_this": 1, "n_m": 1, "o": {"a-b": [True, 1.5]}, "t": "ü"}
        assert send(broker, out, Message(b"before", {"kind": "old"})) is None
        with receiving(tmp_path, config_of(broker, fields)) as taken:
            taken.counted("input_connection_up")
            assert send(broker, out, Message(b"x" * 300_000, meta), Message(b"", meta)) is None
            assert [len(raw) for raw in taken.raws(2)] == [300_000, 0]
        assert dict(taken.messages[0].meta) == {
            **{"kind": "new", "n_m": "1", "o_a_b_0": "true", "o_a_b_1": "1.5", "t": "ü"},
            "amqp_content_type": "text/plain",
            "amqp_content_encoding": "utf-8",
            "amqp_delivery_mode": "2",
            "amqp_priority": "3",
            "amqp_correlation_id": "c",
            "amqp_reply_to": "r",
            "amqp_message_id": "new",
            "amqp_type": "a.b",
            "amqp_user_id": "guest",
            "amqp_app_id": "x",
            "amqp_consumer_tag": "me",
            "amqp_delivery_tag": "1",
            "amqp_redelivered": "false",
            "amqp_exchange": "orders",
            "amqp_routing_key": "orders.new",
        }
        assert ask(broker, lambda channel: channel.queue_declare("round", passive=True)).queue

    def test_ten_thousand_messages_come_once_and_in_order(
        self, broker: str, tmp_path: Path
    ) -> None:
        make_queue(broker, "many")
        for start in range(0, 10_000, 2_500):
            batch = [Message(f"{start + n}".encode()) for n in range(2_500)]
            assert send(broker, "exchange: '', key: many", *batch) is None
        config = config_of(broker, "queue: many, prefetch_count: 1000")
        with receiving(tmp_path / "a", config) as taken:
            assert taken.raws(10_000) == [str(n) for n in range(10_000)]
            # What was read is acknowledged, so that a new stream gets nothing of it.
            assert send(broker, "exchange: '', key: many", Message(b"new")) is None
            assert taken.raws(10_001)[-1] == "new"
        assert take_all(broker, "many") == []

    def test_what_was_not_acknowledged_comes_again(
        self, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from aiormq.channel import Channel

        async def lose(self: Any, *arguments: Any, **more: Any) -> None:
            raise ConnectionError("lost")

        make_queue(broker, "unacked")
        assert send(broker, "exchange: '', key: unacked", Message(b"a")) is None
        with receiving(tmp_path, config_of(broker, "queue: unacked")) as taken:
            with monkeypatch.context() as patched:
                patched.setattr(Channel, "basic_ack", lose)
                assert taken.raws(1) == ["a"]
                taken.counted("input_connection_lost")
            taken.until(lambda messages: messages[-1].meta["amqp_redelivered"] == "true")
        assert take_all(broker, "unacked") == []

    def test_auto_ack(self, broker: str, tmp_path: Path) -> None:
        make_queue(broker, "auto")
        assert send(broker, "exchange: '', key: auto", Message(b"a"), Message(b"b")) is None
        with receiving(tmp_path, config_of(broker, "queue: auto, auto_ack: true")) as taken:
            assert taken.raws(2) == ["a", "b"]


@pytest.mark.slow
class TestRefusals:
    def test_what_cannot_be_sent_is_a_rejection_of_its_message(self, broker: str) -> None:
        make_queue(broker, "good")
        batch = [
            Message(b"0", {"k": "good"}),
            Message(b"1", {"k": "k" * 300}),
            Message(b"x" * 1_000_001, {"k": "good"}),
            Message(b"3", {"k": "good", "expiration": "soon"}),
            Message(b"4", {"k": "good", "p": "10"}),
            Message(b"5", {"k": "good", "big": 1 << 70}),
            Message(b"6", {"k": "good"}),
        ]
        fields = (
            "exchange: '', key: '${! @k }', priority: '${! @p.or(\"\") }', "
            "expiration: '${! @expiration.or(\"\") }'"
        )
        assert reasons(send(broker, fields, *batch)) == {
            1: Reason.INVALID,
            2: Reason.REFUSED,
            3: Reason.REFUSED,
            4: Reason.INVALID,
            5: Reason.INVALID,
        }
        assert sorted(set(take_all(broker, "good"))) == [b"0", b"6"]

    def test_what_no_queue_takes_comes_back_where_it_is_mandatory(self, broker: str) -> None:
        make_queue(broker, "there")
        batch = [Message(f"{n}".encode(), {"k": k}) for n, k in enumerate(("there", "away") * 3)]
        fields = "exchange: '', message_id: same, mandatory: true, key: "
        error = send(broker, fields + "'${! @k }'", *batch)
        assert reasons(error) == dict.fromkeys((1, 3, 5), Reason.REFUSED)
        assert "NO_ROUTE" in str(error)
        assert take_all(broker, "there") == [b"0", b"2", b"4"]
        # A key that all have may get its queue later.
        assert reasons(send(broker, fields + "away", *batch[:2])) == {0: None, 1: None}
        assert send(broker, "exchange: '', key: away", *batch) is None

    def test_an_exchange_that_is_not_there(self, broker: str) -> None:
        make_queue(broker, "known")
        batch = [Message(b"a", {"e": ""}), Message(b"b", {"e": "nowhere"})]
        error = send(broker, "exchange: '${! @e }', key: known", *batch)
        assert reasons(error) == {1: Reason.REFUSED} and "no exchange 'nowhere'" in str(error)
        assert take_all(broker, "known") == [b"a"]
        error = send(broker, "exchange: nowhere, key: known", *batch)
        assert error is not None and not error.is_rejected and "NOT_FOUND" in str(error)

    def test_a_queue_that_is_full_is_waited_for(self, broker: str) -> None:
        limits = {"x-max-length": 2, "x-overflow": "reject-publish"}
        make_queue(broker, "full", **limits)
        batch = [Message(f"{n}".encode()) for n in range(4)]
        error = send(broker, "exchange: '', key: full", *batch)
        assert error is not None and not error.is_rejected and 0 < len(error.errors) < 4
        assert len(take_all(broker, "full")) == 4 - len(error.errors)

    def test_a_declaration_with_other_settings(self, broker: str, tmp_path: Path) -> None:
        make_queue(broker, "other")
        config = config_of(broker, "queue: other, queue_declare: {enabled: true, durable: false}")
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_failed")
            assert any("inequivalent arg 'durable'" in line for line in map(str, taken.lodged.log))

    @pytest.mark.parametrize("user", ["guest:sesame", "nobody:sesame"])
    def test_credentials(self, broker: str, user: str) -> None:
        url = broker.replace("guest:guest", user)
        with pytest.raises(AmqpError, match="refuses the user, the password") as caught:
            built(config_of(url, "exchange: ''")).probe()
        assert "sesame" not in str(caught.value)
        with pytest.raises(AmqpError, match="no such virtual host"):
            built(config_of(f"{broker}nowhere", "exchange: ''")).probe()


@pytest.mark.slow
def test_a_broker_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    port = lasting_port()
    url = f"amqp://127.0.0.1:{port}"
    (tmp_path / "broker").mkdir()
    output = built(config_of(url, "exchange: '', key: q, persistent: true, max_in_flight: 1"))
    fields = "queue: q, queue_declare: {enabled: true}"
    with receiving(tmp_path / "spool", config_of(url, fields)) as taken:
        with rabbitmq_server(tmp_path / "broker", port):
            taken.counted("input_connection_up")
            assert output.deliver([[Message(b"a")]], Seen().ex).errors == [None]
            assert taken.raws(1) == ["a"]
        taken.counted("input_connection_lost")
        with pytest.raises(AmqpError):
            output.probe()
        with rabbitmq_server(tmp_path / "broker", port):
            taken.counted("input_connection_up", 2)
            assert output.deliver([[Message(b"c")]], Seen().ex).errors == [None]
            # What was acknowledged just before it was killed may come again.
            taken.until(lambda messages: messages[-1].raw == b"c")
            assert {one.raw for one in taken.messages} == {b"a", b"c"}
            assert output.probe() == "the broker answers"


def test_a_server_that_speaks_something_else() -> None:
    def answer(connection: Any, over: Any) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)

    with raw_server(answer) as address, pytest.raises(AmqpError):
        built(config_of(f"amqp://{address}", "exchange: ''")).probe()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("urls: [], exchange: ''", "urls is an empty list; expected a URL such as amqp://"),
        ("urls: ['http://a'], exchange: ''", "no URL of AMQP"),
        ("urls: ['amqp://a?cafile=/etc/x'], exchange: ''", "has the parameter 'cafile'"),
        ("urls: ['amqp://a'], exchange: '', tls: {enabled: true}", "has no TLS; use amqps://"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"output: {{amqp_0_9: {{{fields}}}}}\n")


def test_dead_letters_are_no_longer_the_brokers() -> None:
    from streamer.config import parse_config

    fields = "urls: ['amqp://a'], queue: q, nack_reject_patterns: ['^x']"
    with pytest.raises(ConfigError, match="acknowledged before they are processed"):
        parse_config(f"input: {{amqp_0_9: {{{fields}}}}}\n")
