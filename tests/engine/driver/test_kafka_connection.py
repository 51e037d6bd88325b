"""Whether brokers answer: what is counted when they cease to, and when they do again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from streamer.engine.driver.kafka_connection import KafkaConnections
from streamer.engine.planner.kafka_inputs import StreamKafkaInput


class Reading:
    """A Kafka input whose brokers answer, or not, one ping after the other."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)

    def connection_problem(self) -> str | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def child_of(reading: Any) -> StreamKafkaInput:
    return StreamKafkaInput(reading)


def soon(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_an_outage_is_lost_once_fails_at_each_ping_and_is_up_again() -> None:
    reading, counted = Reading(None, "gone", "gone", "still gone", None), list[str]()
    found = KafkaConnections([child_of(Reading(None)), child_of(reading)], counted.append, 0.001)
    soon(lambda: counted[-1:] == ["input_connection_up"])
    found.close()
    assert counted == [
        "input_connection_lost",
        *["input_connection_failed"] * 2,
        "input_connection_up",
    ]
    assert found.problem == ""


def test_why_brokers_do_not_answer_is_there_while_they_do_not() -> None:
    found = KafkaConnections([child_of(Reading("no broker answers"))], lambda name: None, 0.001)
    soon(lambda: found.problem == "no broker answers")
    found.close()
