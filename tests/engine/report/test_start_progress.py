"""The phases of a start on a scripted clock: what is waited for, and what the log says."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.config import parse_config
from streamer.engine.report.start_progress import NO_PROGRESS, StartPhase, StartProgress


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock) -> StartProgress:
    return StartProgress(clock)


def shown(progress: StartProgress) -> tuple[str, float] | None:
    state = progress.current
    return None if state is None else (state.text, state.seconds)


def logged(progress: StartProgress) -> list[tuple[str, str, Any]]:
    lines: list[tuple[str, str, Any]] = []
    progress.log_to(lambda *line: lines.append(line))
    return lines


def test_a_phase_lasts_until_the_next_one(progress: StartProgress, clock: Clock) -> None:
    assert shown(progress) is None
    progress.begin(StartPhase.CHECKPOINT)
    clock.now += 2.5
    assert shown(progress) == ("opening the checkpoint", 2.5)
    progress.begin(StartPhase.CONNECT, "orders")
    assert shown(progress) == ("connecting to orders", 0.0)
    clock.now += 1
    progress.begin(StartPhase.FIRST_BATCH)
    assert shown(progress) == ("first micro-batch", 0.0)
    assert progress.seconds == 3.5


def test_what_starts_in_the_background_shows_when_nothing_else_is_waited_for(
    progress: StartProgress, clock: Clock
) -> None:
    progress.begin(StartPhase.CHECKPOINT)
    progress.begin(StartPhase.JAVA)
    clock.now += 1
    assert shown(progress) == ("opening the checkpoint", 1.0)
    progress.end(StartPhase.CHECKPOINT)
    assert shown(progress) == ("starting Java", 1.0)
    progress.begin(StartPhase.SPARK)
    clock.now += 2
    assert shown(progress) == ("starting Spark", 2.0)
    progress.begin(StartPhase.QUERY)
    assert shown(progress) == ("starting the query", 0.0)
    progress.end(StartPhase.QUERY)
    assert shown(progress) is None, "Spark has started, or there were no query"


def test_a_phase_that_is_not_in_hand_does_not_end(progress: StartProgress) -> None:
    progress.begin(StartPhase.SPARK)
    progress.end(StartPhase.CONNECT)
    assert shown(progress) == ("starting Spark", 0.0)


def test_a_component_is_called_by_its_label_or_by_its_name(progress: StartProgress) -> None:
    config = parse_config("input: {label: orders, stdin: {}}\noutput: {drop: {}}")
    progress.connect(config.input)
    assert shown(progress) == ("connecting to orders", 0.0)
    progress.connect(config.output)
    assert shown(progress) == ("connecting to drop", 0.0)


def test_after_the_first_micro_batch_nothing_is_waited_for(progress: StartProgress) -> None:
    progress.begin(StartPhase.FIRST_BATCH)
    progress.finish()
    assert progress.is_finished
    # Another revision takes the place of the first: the stream runs.
    progress.begin(StartPhase.CONNECT, "orders")
    assert shown(progress) is None
    assert NO_PROGRESS.is_finished


def test_the_log_has_a_line_for_each_phase_with_the_seconds_since_the_command(
    progress: StartProgress, clock: Clock
) -> None:
    lines = logged(progress)
    for phase in StartPhase:
        progress.begin(phase, "orders" if phase == StartPhase.CONNECT else "")
        progress.check_connection()
        clock.now += 0.72
        progress.end(phase)
    progress.finish()
    progress.finish()
    assert lines == [
        ("INFO", "Opening the checkpoint", {"seconds": 0.7}),
        ("INFO", "Starting Java", {"seconds": 2.2}),
        ("INFO", "Starting Spark", {"seconds": 2.9}),
        ("INFO", "The first micro-batch is delivered", {"seconds": 5.0}),
    ]


def test_a_start_that_is_given_up_delivers_nothing(progress: StartProgress) -> None:
    lines = logged(progress)
    progress.begin(StartPhase.FIRST_BATCH)
    progress.finish(delivered=False)
    assert (progress.is_finished, lines) == (True, [])


def test_a_micro_batch_that_nobody_saw_delivered_before_the_end_has_its_line_once(
    progress: StartProgress,
) -> None:
    lines = logged(progress)
    for delivered in (False, True, True, False):
        progress.finish(delivered)
    assert progress.is_finished
    assert [text for _, text, _ in lines] == ["The first micro-batch is delivered"]


def test_a_connection_that_takes_long_has_one_line(progress: StartProgress, clock: Clock) -> None:
    lines = logged(progress)
    for component in ("orders", "database"):
        progress.begin(StartPhase.CONNECT, component)
        for _ in range(4):
            progress.check_connection()
            clock.now += 0.4
    assert [(text, fields) for _, text, fields in lines] == [
        ("Still connecting to orders", {"seconds": 1.2}),
        ("Still connecting to database", {"seconds": 2.8}),
    ]
