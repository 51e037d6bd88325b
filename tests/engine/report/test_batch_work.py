"""How long a micro-batch was in the hands of its stream's own processors and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson
import pytest

from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.driver.delivery import Delivery
from streamer.engine.driver.delivery_setup import (
    DeliveredStream,
    DeliveryClocks,
    DeliveryListeners,
    DeliverySinks,
    Resend,
)
from streamer.engine.report.batch_work import (
    AFTER_WINDOWS,
    BEFORE_WINDOWS,
    BatchWork,
    TaskWork,
    combine_tasks,
)
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.report.running_clock import RunningClock
from streamer.engine.report.undelivered import UndeliveredBatches, encode_undelivered
from streamer.window import SystemWindow
from streamer.window.contract import Counters

T = 1628330400 * SECOND
WINDOW = SystemWindow(5 * SECOND)
MILLISECOND = SECOND // 1000


def task(stage: int, processors: int, outputs: int = 0) -> TaskWork:
    return TaskWork(stage, processors * SECOND, outputs * SECOND)


def test_tasks_count_as_on_a_machine_of_the_streams_own() -> None:
    after = [task(AFTER_WINDOWS, 1, 5), task(AFTER_WINDOWS, 2, 1), task(AFTER_WINDOWS, 1, 0)]
    assert combine_tasks([], 2) == (0, 0)
    assert combine_tasks(after, 4) == (1 * SECOND, 5 * SECOND), "the longest, side by side"
    assert combine_tasks(after, 1) == (4 * SECOND, 6 * SECOND), "one after the other"
    before = [task(BEFORE_WINDOWS, 3), task(BEFORE_WINDOWS, 9)]
    assert combine_tasks([*before, *after], 4) == (10 * SECOND, 5 * SECOND)
    assert TaskWork.from_json(after[0].to_json()) == after[0]


class Machine:
    """A steady clock that writing and pauses move."""

    def __init__(self) -> None:
        self.at = 3 * SECOND
        self.clock = RunningClock(lambda: self.at, lambda: 0, beats=False)

    def pass_by(self, seconds: float) -> None:
        """Time passes, and the process runs."""
        for _ in range(round(seconds * 4)):
            self.at += SECOND // 4
            self.clock.check()


class Output:
    """Fails so often, and takes so long each time."""

    def __init__(self, machine: Machine, fails: int, seconds: float, stops: float = 0) -> None:
        self._machine, self._fails, self._seconds = machine, fails, seconds
        self._stops = stops

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        self._machine.at += round(self._stops * SECOND)
        self._machine.pass_by(self._seconds)
        self._fails -= 1
        if self._fails >= 0:
            raise ConnectionRefusedError("Connection refused")


def delivered(
    output: Output,
    machine: Machine,
    tasks: Sequence[TaskWork] = (),
    more: Sequence[Frame] = (),
    resend: Resend | None = None,
) -> list[BatchWork]:
    """Deliver a micro-batch; return what is reported of it."""
    found: list[BatchWork] = []
    lines: list[Any] = []
    delivery = Delivery(
        [output],  # type: ignore[list-item]
        lambda *line: lines.append(line),
        lambda: False,
        clocks=DeliveryClocks(
            sleep=machine.pass_by, now=lambda: machine.at / SECOND, running=machine.clock
        ),
        stream=DeliveredStream(window=WINDOW, parallel_tasks=lambda: 2),
        listeners=DeliveryListeners(on_work=found.append),
        sinks=DeliverySinks(resend=resend),
    )
    status = {"now": T, "closed": [], "next_due": None, "open": [], "held": 0, "ended": False}
    status["counters"] = asdict(Counters())
    frames = [Frame(FrameKind.STATUS, 0, 0, 0, 0, "", orjson.dumps(status))]
    frames += [Frame(FrameKind.WORK, 0, 0, 1, 0, "", one.to_json()) for one in tasks]
    delivery.deliver(0, [*frames, *more])
    return found


def test_the_tries_of_a_blocked_output_and_the_waits_between_them_are_reported() -> None:
    machine = Machine()
    (work,) = delivered(Output(machine, fails=5, seconds=1), machine, [task(AFTER_WINDOWS, 2, 1)])
    waits = 0.5 + 1 + 2 + 4 + 8
    assert work.time == T and (work.processors, work.sending) == (2 * SECOND, SECOND)
    assert work.delivery == round((6 + waits) * SECOND)


def test_processors_that_are_too_slow_are_reported() -> None:
    machine = Machine()
    (work,) = delivered(Output(machine, 0, 0), machine, [task(BEFORE_WINDOWS, 11)])
    assert (work.processors, work.sending, work.delivery) == (11 * SECOND, 0, 0)


def test_what_is_shorter_than_windows_may_wait_is_not_reported() -> None:
    machine = Machine()
    assert delivered(Output(machine, 0, 10), machine) == []
    assert len(delivered(Output(machine, 0, 10.25), machine)) == 1


def test_a_program_that_was_stopped_while_it_wrote_reports_nothing() -> None:
    machine = Machine()
    assert delivered(Output(machine, 0, 1, stops=45), machine) == []


@pytest.mark.parametrize(("tries", "reported"), [(1, False), (4, True)])
def test_a_try_to_send_again_counts_and_what_it_waits_for_does_not(
    tries: int, reported: bool
) -> None:
    # Each try takes three seconds, and a minute to get its turn beside other streams.
    machine = Machine()
    left = [tries]
    body = encode_undelivered(UndeliveredBatches(0, 0, [[Message(b"a")]], "refused", {}))
    undelivered = Frame(FrameKind.UNDELIVERED, 0, 0, 0, 0, "", body)

    def resend(portion: Sequence[UndeliveredBatches], batch: int) -> list[Frame]:
        machine.pass_by(60 + 3)
        left[0] -= 1
        work = Frame(FrameKind.WORK, 0, 0, 0, 0, "", task(AFTER_WINDOWS, 0, 3).to_json())
        return [work, undelivered] if left[0] else [work]

    found = delivered(Output(machine, 0, 0), machine, more=[undelivered], resend=resend)
    assert bool(found) is reported
    for work in found:
        assert 4 * 3 * SECOND < work.delivery < 60 * SECOND


def test_twenty_streams_on_two_cores_report_nothing_however_long_they_wait_for_these() -> None:
    # Each has a message a second, and its tasks wait for two minutes until one of two cores is
    # free: processors and outputs take some milliseconds of each.
    machine = Machine()
    few = TaskWork(AFTER_WINDOWS, 3 * MILLISECOND, 2 * MILLISECOND)
    for _ in range(20):
        machine.pass_by(120)
        assert delivered(Output(machine, 0, 0), machine, [few] * 64) == []
