"""A clock that is set and a machine that is suspended are said once, with how much it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamer.core.durations import SECOND
from streamer.engine.driver.clock_watch import ClockWatch


@dataclass
class Machine:
    wall: int = 1628330400 * SECOND
    steady: int = SECOND
    since_boot: int = SECOND
    lines: list[tuple[str, str, Any]] = field(default_factory=list)

    def watch(self) -> ClockWatch:
        return ClockWatch(
            lambda *line: self.lines.append(line),
            lambda: self.wall,
            lambda: self.steady,
            lambda: self.since_boot,
        )

    def go_on(self, seconds: float, suspended: float = 0) -> None:
        self.wall += round((seconds + suspended) * SECOND)
        self.since_boot += round((seconds + suspended) * SECOND)
        self.steady += round(seconds * SECOND)

    def said(self) -> list[tuple[str, str]]:
        found = [(level, text) for level, text, _ in self.lines]
        self.lines.clear()
        return found


def test_a_step_is_said_once_with_its_size() -> None:
    machine = Machine()
    watch = machine.watch()
    for step, words in ((-3600, "back by 1h"), (3600, "forward by 1h"), (-1.5, "back by 1.5s")):
        machine.go_on(20)
        machine.wall += round(step * SECOND)
        watch.check()
        ((level, text),) = machine.said()
        assert level == "WARN" and f"clock was set {words}: " in text
        machine.go_on(20)
        watch.check()
        assert machine.said() == []


def test_a_suspended_machine_is_no_step_of_its_clock() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.go_on(1, suspended=45)
    watch.check()
    ((level, text),) = machine.said()
    assert level == "WARN" and "was suspended for 45s" in text


def test_a_program_that_was_stopped_and_a_clock_that_is_slewed_say_nothing() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.go_on(45)
    watch.check()
    machine.go_on(1)
    machine.wall += SECOND // 3
    watch.check()
    assert machine.said() == []


def test_clocks_are_read_at_one_moment() -> None:
    machine = Machine()
    reads = iter([0, 0, 0, 3 * SECOND, 3 * SECOND, 3 * SECOND])

    def wall() -> int:
        # The first time, the process loses its core for three seconds right after this.
        found = machine.wall
        machine.go_on(next(reads, 0) / SECOND)
        return found

    lines: list[Any] = []
    watch = ClockWatch(
        lambda *line: lines.append(line), wall, lambda: machine.steady, lambda: machine.since_boot
    )
    for _ in range(6):
        watch.check()
    assert lines == []
