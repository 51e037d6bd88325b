"""The time of a stream's micro-batches while the machine's clock is set, and its own slow time."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.core.durations import SECOND
from streamer.engine.planner.trigger import BatchClock, measure_pressure, standstill_between
from streamer.engine.report.batch_work import BatchWork
from streamer.window.settings.back_pressure import BackPressure

T = 1628330400 * SECOND
HOUR = 3600 * SECOND


@dataclass
class Machine:
    """A machine's clock, which can be set, and its steady one."""

    wall: int = T
    steady: int = 7 * SECOND

    def go_on(self, ns: int) -> None:
        self.wall += ns
        self.steady += ns

    def clock(self) -> BatchClock:
        return BatchClock(lambda: self.wall, lambda: self.steady)


def test_the_time_is_the_machines_while_nobody_sets_it() -> None:
    machine = Machine()
    clock = machine.clock()
    clock.continue_from(T - HOUR)
    for _ in range(5):
        assert clock.now() == machine.wall
        machine.go_on(3 * SECOND)


def test_while_the_clock_is_behind_the_time_goes_on_at_half_the_pace_until_it_has_caught_up() -> (
    None
):
    machine = Machine()
    clock = machine.clock()
    assert clock.now() == T
    machine.wall -= HOUR
    for number in range(1, 8):
        machine.go_on(1000 * SECOND)
        assert clock.now() == T + number * 500 * SECOND
    machine.go_on(200 * SECOND)
    assert clock.now() == T + HOUR == machine.wall
    machine.go_on(SECOND)
    assert clock.now() == machine.wall


def test_it_is_the_same_however_often_somebody_looks() -> None:
    times = []
    for looks in (1, 1000):
        machine = Machine()
        clock = machine.clock()
        clock.now()
        machine.wall -= HOUR
        for _ in range(looks):
            machine.go_on(100 * SECOND // looks)
            clock.now()
        times.append(clock.now())
    assert abs(times[0] - times[1]) <= 1000


def test_the_time_goes_forward_with_the_clock_and_never_back() -> None:
    machine = Machine()
    clock = machine.clock()
    assert clock.now() == T
    machine.wall += HOUR
    assert clock.now() == T + HOUR
    machine.wall -= HOUR
    machine.go_on(2 * SECOND)
    assert clock.now() == T + HOUR + SECOND


def test_a_start_goes_on_from_the_newest_micro_batch_though_the_clock_is_behind_it() -> None:
    machine = Machine()
    clock = machine.clock()
    clock.continue_from(T + HOUR)
    assert clock.now() == T + HOUR
    machine.go_on(10 * SECOND)
    clock.continue_from(T + HOUR)
    assert clock.now() == T + HOUR + 5 * SECOND


def test_time_that_goes_on_by_itself_is_known() -> None:
    assert standstill_between((T, 0), T + 9 * SECOND, 9 * SECOND) == 0
    assert standstill_between((T, 0), T + HOUR + 9 * SECOND, 9 * SECOND) == HOUR
    assert standstill_between((T, 0), T + 10 * SECOND - 1, 9 * SECOND) == 0, "slewed"
    assert standstill_between((T, 0), T + 5 * SECOND, 10 * SECOND) == 0, "behind"


def work(began: int, processors: int = 0, sending: int = 0, delivery: int = 0) -> BatchWork:
    return BatchWork(T, began, processors, sending, delivery)


def test_what_is_busy_lies_where_it_was_by_the_time_of_micro_batches() -> None:
    # Planned when the steady clock said 100 s; its tasks waited for cores until 160 s.
    found = measure_pressure(
        (T, 100 * SECOND),
        T + 90 * SECOND,
        work(160 * SECOND, 3 * SECOND, 4 * SECOND, 20 * SECOND),
    )
    tasks, delivery = (T, T + 7 * SECOND), (T + 60 * SECOND, T + 80 * SECOND)
    assert found == BackPressure((tasks, delivery), 3 * SECOND, 24 * SECOND)
    assert found.overdue_since(10 * SECOND) == T + 70 * SECOND
    assert found.overdue_since(20 * SECOND) == T + 7 * SECOND, "nothing between the two"
    assert found.overdue_since(25 * SECOND) == T + 2 * SECOND
    assert found.overdue_since(27 * SECOND) is None
    assert BackPressure.from_fields(found.to_fields()) == found


def test_a_step_of_the_clock_is_not_busy_in_either_direction() -> None:
    # An output was blocked for 20 s; meanwhile the clock went an hour forward.
    found = measure_pressure((T, 0), T + HOUR, work(SECOND, delivery=20 * SECOND))
    assert found.busy == ((T + SECOND, T + 21 * SECOND),)
    # It went back: the time of micro-batches went on at half the pace, and no further.
    found = measure_pressure((T, 0), T + 11 * SECOND, work(SECOND, delivery=20 * SECOND))
    assert found.busy == ((T + SECOND, T + 11 * SECOND),)
    found = measure_pressure((T, 0), T + SECOND, work(60 * SECOND, delivery=20 * SECOND))
    assert found.busy == ()
