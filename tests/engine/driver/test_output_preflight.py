"""Outputs are looked at when a stream starts: what passes is logged, what does not ends it."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.engine.driver.output_preflight import preflight_outputs
from streamer.plan import make_plan
from tests.servers import free_port
from tests.servers.kafka.client import Kafka


class Log:
    """Takes lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, Any]] = []

    def __call__(self, level: str, text: str, fields: Any) -> None:
        self.lines.append((level, text, dict(fields)))


def _look(output: str) -> list[tuple[str, str, Any]]:
    log = Log()
    preflight_outputs(make_plan(parse_config(f"output: {output}")), log, "s")
    return log.lines


def test_outputs_that_say_nothing_of_themselves_are_not_looked_at():
    assert _look("{broker: {outputs: [{drop: {}}, {stdout: {}}]}}") == []


def test_a_broker_that_is_away_is_waited_for_wherever_its_output_stands():
    nowhere = f"127.0.0.1:{free_port()}"
    kafka = (
        f"{{kafka_franz: {{seed_brokers: ['{nowhere}'], topic: a, request_timeout_overhead: 1s}}}}"
    )
    [(level, text, fields)] = _look(f"{{fallback: [{{drop: {{}}}}, {kafka}]}}")
    assert level == "ERROR"
    assert text.startswith(f"Messages will wait: no broker answers at {nowhere}: ")
    assert fields == {"path": "output.fallback.1"}


@pytest.mark.slow
def test_a_topic_that_is_not_there_and_may_not_come_ends_the_start(kafka: Kafka) -> None:
    fields = f"seed_brokers: ['{kafka.bootstrap}'], topic: never-made"
    assert _look(f"{{redpanda: {{{fields}}}}}") == []
    with pytest.raises(StreamerError, match="^output: there is no topic 'never-made', and it is"):
        _look(f"{{redpanda: {{{fields}, allow_auto_topic_creation: false}}}}")
