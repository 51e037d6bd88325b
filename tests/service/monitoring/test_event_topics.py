"""Lines of the log and the status of a stream as the topics of the section `redpanda` get them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.output.event_producer import EventProducer
from streamer.core.redaction import Redaction
from streamer.engine.report.trouble import Trouble
from streamer.plan import make_plan
from streamer.service.monitoring.event_topics import EventTopics
from streamer.service.monitoring.stream_view import _EMPTY_STATE as EMPTY

NOW = 1_700_000_000_123_000_000


class Sent:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any], str]] = []
        self.dropped, self.last_error = 0, ""

    def send(self, topic: str, value: bytes, key: str) -> None:
        self.events.append((topic, json.loads(value), key))

    def close(self, timeout: float) -> None:
        self.dropped, self.last_error = 1, "too late"


def topics(fields: str) -> tuple[EventTopics, Sent]:
    text = f"redpanda: {{seed_brokers: ['a:1'], pipeline_id: p, {fields}}}"
    section = parse_config(text).redpanda
    assert section is not None
    sent = Sent()
    return EventTopics(section, sent, Redaction(["hush-hush"]), lambda: NOW), sent


def test_a_line_is_a_json_object_of_texts_with_the_pipelines_id_as_its_key() -> None:
    made, sent = topics("logs_topic: logs")
    made.send_line("WARN", "It is hush-hush", {"path": "root.input", "micro_batch": 3, "ok": True})
    made.send_line("DEBUG", "hidden", {})
    made.send_line("FATAL", "over", {})
    (topic, line, key), (_, last, _) = sent.events
    assert len(line.pop("instance_id")) > 10
    assert (topic, key) == ("logs", "p")
    assert line == {
        "message": "It is !!!SECRET_SCRUBBED!!!",
        "level": "WARN",
        "time": "2023-11-14T22:13:20.123Z",
        "pipeline_id": "p",
        "path": "root.input",
        "micro_batch": "3",
        "ok": "true",
    }
    assert last["level"] == "ERROR"


def test_a_status_is_connects_event() -> None:
    made, sent = topics("status_topic: status")
    made.send_line("ERROR", "no topic for it", {})
    made.start(lambda: None)
    made.send_state(None)
    made.send_state(EMPTY)
    place = {"label": "mine", "path": "root.output"}
    made.send_state(replace(EMPTY, trouble=Trouble("hush-hush is down", place)))
    made.close("it broke")
    ids = {event.pop("instanceId") for _, event, _ in sent.events}
    assert len(ids) == 1 and {key for _, _, key in sent.events} == {"p"}
    common = {"pipelineId": "p", "timestamp": "1700000000"}
    error = {"message": "!!!SECRET_SCRUBBED!!! is down", "path": "root.output", "label": "mine"}
    assert [event for _, event, _ in sent.events] == [
        {"type": "TYPE_INITIALIZING", **common},
        {"type": "TYPE_CONNECTION_HEALTHY", **common},
        {"type": "TYPE_CONNECTION_ERROR", **common, "connectionErrors": [error]},
        {"type": "TYPE_EXITING", **common, "exitError": {"message": "it broke"}},
    ]
    assert made.describe_losses() == "1 events were dropped: too late"


def test_an_event_that_cannot_be_sent_is_dropped_and_stops_nothing() -> None:
    class Full:
        def produce(self, *args: Any, **more: Any) -> None:
            raise BufferError("the queue is full")

        def flush(self, timeout: float) -> int:
            return 2

    section = parse_config("redpanda: {seed_brokers: ['a:1'], compression: zstd}").redpanda
    assert section is not None
    given: dict[str, Any] = {}
    producer = EventProducer(section, lambda settings: given.update(settings) or Full())
    producer.send("t", b"x", "")
    producer.close(1.0)
    assert (producer.dropped, producer.last_error) == (3, "the queue is full")
    assert given["compression.type"] == "zstd" and given["message.timeout.ms"] == 60_000


@pytest.mark.parametrize(
    ("logger", "topic", "expected"),
    [("INFO", "debug", "DEBUG"), ("WARN", "error", "WARN"), ("NONE", "warn", "WARN")],
)
def test_workers_send_what_the_topic_is_to_have(logger: str, topic: str, expected: str) -> None:
    text = f"redpanda: {{seed_brokers: ['a:1'], logs_topic: t, logs_level: {topic}}}"
    assert make_plan(parse_config(text), logger).level == expected
    assert make_plan(parse_config("{}"), logger).level == logger
