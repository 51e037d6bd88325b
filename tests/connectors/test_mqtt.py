"""`mqtt` as input and output, with a real broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, batches, built
from tests.servers import free_port
from tests.servers.mosquitto import mosquitto


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto")) as url:
        yield url


def send(broker: str, fields: str, batch: list[Message]) -> Any:
    return built(f"mqtt: {{urls: ['{broker}'], {fields}}}").deliver([batch], Seen().ex)


@pytest.mark.slow
def test_what_is_published_is_received(broker: str, tmp_path: Path) -> None:
    config = f"mqtt: {{urls: ['tcp://127.0.0.1:{free_port()}', '{broker}'], topics: [a/+, b]}}"
    with receiving(tmp_path, config) as taken:
        taken.counted("input_connection_up")
        batch = [Message(f"{n}".encode(), {"t": t}) for n, t in enumerate(("a/x", "c", "b", "a/y"))]
        assert send(broker, "topic: '${! @t }', qos: 2", batch).errors == [None]
        assert taken.raws(3) == ["0", "2", "3"]
    meta = dict(taken.messages[0].meta)
    assert meta.pop("mqtt_message_id") > 0
    expected = {"mqtt_duplicate": False, "mqtt_qos": 1, "mqtt_retained": False}
    assert meta == {**expected, "mqtt_topic": "a/x"}


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["a/#", "a/+/b", "", "a\0b", "a\nb", "x" * 70_000])
def test_a_topic_that_cannot_be_is_a_rejection_of_its_message(
    broker: str, tmp_path: Path, topic: str
) -> None:
    with receiving(tmp_path, f"mqtt: {{urls: ['{broker}'], topics: [good]}}") as taken:
        taken.counted("input_connection_up")
        topics = ["good", topic, "good"]
        batch = [Message(f"{n}".encode(), {"t": t}) for n, t in enumerate(topics)]
        [error] = send(broker, "topic: '${! @t }'", batch).errors
        assert error is not None and error.is_rejected and [*error.errors] == [1]
        text = error.errors[1]
        assert isinstance(text, Rejection) and text.reason == Reason.INVALID and text
        assert taken.raws(2) == ["0", "2"]


@pytest.mark.slow
def test_a_message_may_be_retained(broker: str, tmp_path: Path) -> None:
    batch = [Message(b"kept", {"r": "true"}), Message(b"passing", {"r": "false"})]
    fields = "topic: kept, retained_interpolated: '${! @r }'"
    assert send(broker, fields, batch).errors == [None]
    with receiving(tmp_path, f"mqtt: {{urls: ['{broker}'], topics: [kept]}}") as taken:
        assert taken.raws(1) == ["kept"]
    assert taken.messages[0].meta["mqtt_retained"] is True


@pytest.mark.slow
def test_a_broker_keeps_what_comes_while_a_named_client_is_away(
    broker: str, tmp_path: Path
) -> None:
    config = f"mqtt: {{urls: ['{broker}'], topics: [away], client_id: me, clean_session: false}}"
    with receiving(tmp_path, config) as taken:
        taken.counted("input_connection_up")
    assert send(broker, "topic: away, client_id: me", [Message(b"a"), Message(b"b")]).errors == [
        None
    ]
    with receiving(tmp_path, config) as taken:
        assert taken.raws(2) == ["a", "b"]


@pytest.mark.slow
def test_the_last_will_is_published_when_the_client_is_gone(broker: str, tmp_path: Path) -> None:
    from streamer.connectors.mqtt import connect
    from tests.components.inputs.reading import built as built_input

    with receiving(tmp_path, f"mqtt: {{urls: ['{broker}'], topics: [wills]}}") as taken:
        taken.counted("input_connection_up")
        will = "will: {enabled: true, topic: wills, payload: gone, qos: 1}"
        source = built_input(f"input: {{mqtt: {{urls: ['{broker}'], topics: [x], {will}}}}}")
        there = threading.Event()
        client = connect(
            source.parsed,
            lambda one: setattr(one, "on_connect", lambda *_: there.set()),
        )
        while not there.is_set():
            client.loop(0.1)
        client.socket().close()  # without a word
        assert taken.raws(1) == ["gone"]


@pytest.mark.slow
def test_what_is_sent_while_the_broker_is_away_comes_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    output = built(f"mqtt: {{urls: ['{url}'], topic: t, write_timeout: 1s, max_in_flight: 1}}")
    (tmp_path / "broker").mkdir()
    with mosquitto(tmp_path / "broker", port):
        assert output.deliver(batches("a"), Seen().ex).errors == [None]
    with (
        mosquitto(tmp_path / "broker", port),
        receiving(tmp_path / "spool", f"mqtt: {{urls: ['{url}'], topics: [t]}}") as taken,
    ):
        taken.counted("input_connection_up")
        assert output.deliver(batches("b"), Seen().ex).errors == [None]
        assert "b" in taken.raws(1)
        assert output.probe() == "the broker answers"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("urls: [], topic: t", "urls is an empty list; expected a URL such as tcp://"),
        ("urls: ['http://a'], topic: t", "expected a URL such as tcp://localhost:1883"),
        ("urls: ['tcp://a'], topic: t, qos: 3", "qos is 3; expected 0, 1 or 2"),
        ("urls: ['tcp://a'], topic: t, will: {enabled: true}", "include topic to register a last"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        built(f"mqtt: {{{fields}}}")
