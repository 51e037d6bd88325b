"""Which trouble with brokers the driver shows: the planner's, or its own while no query runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.input.opened_input import Backlog, Offsets
from streamer.core.errors import StreamerError
from streamer.engine.planner.kafka_inputs import StreamKafkaInput
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.plan import make_plan
from streamer.spark.query.kafka_driver import InputReport, KafkaDriver


class Topic:
    """A Kafka input whose brokers answer, but for the times that it is given."""

    group, lag_metric, lost_metric, bound = "", "", "", None
    commit_period = lag_period = 10**9
    starting: Mapping[tuple[str, int], int] = {}

    def __init__(self) -> None:
        self.problems: list[str | None] = []

    def reachability_problem(self) -> str | None:
        return self.problems.pop(0) if self.problems else None

    def connection_problem(self) -> str | None:
        return None

    def mean_message_size(self) -> int | None:
        return None

    def backlog(self, known: Offsets) -> Backlog:
        return Backlog(0, False, known)

    def close(self) -> None:
        pass


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def channel(tmp_path: Path) -> PlannerChannel:
    made = PlannerChannel(tmp_path / "signals")
    made.clear()
    return made


@pytest.fixture
def driver(topic: Topic, channel: PlannerChannel, tmp_path: Path) -> Iterator[KafkaDriver]:
    child = StreamKafkaInput(topic)  # type: ignore[arg-type]
    plan = make_plan(parse_config("input: {stdin: {}}\n", "a.yaml"))
    ignore: Any = lambda *_: None  # noqa: E731
    made = KafkaDriver(
        [child], plan, tmp_path, channel, InputReport(ignore, ignore, lambda: 0, ignore)
    )
    yield made
    made.close()


def test_what_the_planner_waits_for_is_an_outage_until_it_is_over(
    driver: KafkaDriver, channel: PlannerChannel
) -> None:
    assert driver.outage == "" and driver.data_loss == ""
    channel.planner.update(trouble="no broker answers")
    assert driver.outage == "no broker answers" and driver.data_loss == ""
    channel.planner.update(trouble="")
    assert driver.outage == ""


def test_what_the_planner_has_found_lost_ends_the_stream(
    driver: KafkaDriver, channel: PlannerChannel
) -> None:
    channel.planner.update(trouble="a:0 is gone", is_lost=True)
    assert driver.data_loss == "a:0 is gone"
    with pytest.raises(StreamerError, match="a:0 is gone"):
        driver.wait_until_reachable("KafkaException", Event())


def test_after_a_failure_the_driver_waits_itself_and_the_planner_of_before_does_not_count(
    driver: KafkaDriver, topic: Topic, channel: PlannerChannel
) -> None:
    channel.planner.update(trouble="no broker answers")
    shown: list[str] = []

    class Waited(Event):
        def wait(self, timeout: float | None = None) -> bool:
            shown.append(driver.outage)
            return False

    topic.problems = ["refused", "refused"]
    assert driver.wait_until_reachable("some error", Waited())
    assert shown == ["refused", "refused"] and driver.outage == ""
