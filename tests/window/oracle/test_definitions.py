"""With lateness enough for all, windows are what their definitions say, whatever the order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.hopping import Hopping, HoppingOracle
from tests.window.oracle.play import Steps
from tests.window.oracle.session import Session, SessionOracle
from tests.window.oracle.sliding import Sliding
from tests.window.oracle.sliding_event import EventOracle, EventSliding
from tests.window.oracle.sliding_forward import ForwardOracle
from tests.window.oracle.sliding_kafka import MS, KafkaOracle, KafkaSliding

LATENESS = 10**9 * MS
TIMES = st.lists(st.integers(-15, 15), min_size=1, max_size=12)
SIZES = st.integers(1, 10)
Found = set[tuple[int, int, tuple[int, ...]]]


def found(oracle: Steps, times: Sequence[int], unit: int = 1) -> Found:
    """All windows at the end: their bounds, and the times inside in order."""
    events = tuple(Event(str(time), time * unit) for time in times)
    out = oracle.step(MicroBatch(0, events, ended=True))
    assert out.dropped == []
    return {
        (b.start // unit, b.end // unit, tuple(sorted(map(int, b.ids))))
        for b in out.batches
        if b.start is not None and b.end is not None
    }


def inside(times: Sequence[int], start: int, end: int) -> tuple[int, int, tuple[int, ...]]:
    """Both inclusive."""
    return start, end, tuple(sorted(time for time in times if start <= time <= end))


def whole(windows: set[tuple[int, int, tuple[int, ...]]]) -> Found:
    return {window for window in windows if window[2]}


def definition(test: Callable[[list[int], int], None]) -> Callable[[], None]:
    return settings(max_examples=examples(30, 200), deadline=None)(given(TIMES, SIZES)(test))


@definition
def test_hopping_windows_hold_what_is_between_their_bounds(times: list[int], size: int) -> None:
    every = max(1, size // 2)
    rules = Hopping(size=size, every=every, offset=every - 1, allowed_lateness=LATENESS)
    starts = [start for start in range(-40, 40) if (start - every + 1) % every == 0]
    windows = whole({inside(times, start, start + size - 1) for start in starts})
    assert found(HoppingOracle(rules), times) == {(s, e + 1, held) for s, e, held in windows}


@definition
def test_sessions_are_what_no_gap_parts(times: list[int], gap: int) -> None:
    at = sorted(times)
    starts = [at[0]] + [time for last, time in zip(at, at[1:], strict=False) if time - last > gap]
    session = {time: sum(start <= time for start in starts) for time in at}
    groups = [list(group) for _, group in groupby(at, key=session.__getitem__)]
    expected = {(group[0], group[-1], tuple(group)) for group in groups}
    assert found(SessionOracle(Session(gap=gap, allowed_lateness=LATENESS)), times) == expected


@definition
def test_sessions_of_events_in_order_are_cut_at_the_first_check_too_long_after_the_start(
    times: list[int], gap: int
) -> None:
    longest = gap + 2
    groups: list[list[int]] = []
    for time in sorted(times):
        # The first check more than `longest` after the start is the second one after it or later.
        too_long = bool(groups) and any(
            check - groups[-1][0] > longest and check < time
            for check in range(-longest * 20, time, longest)
        )
        if not groups or time - groups[-1][-1] > gap or too_long:
            groups.append([])
        groups[-1].append(time)
    rules = Session(gap=gap, max_duration=longest, allowed_lateness=LATENESS)
    expected = {(group[0], group[-1], tuple(group)) for group in groups}
    assert found(SessionOracle(rules), sorted(times)) == expected


@definition
def test_forward_windows_begin_at_every_distinct_time(times: list[int], size: int) -> None:
    rules = Sliding(size=size, allowed_lateness=LATENESS)
    assert found(ForwardOracle(rules), times) == {inside(times, t, t + size) for t in times}


@definition
def test_kafka_windows_end_at_every_distinct_time_or_begin_just_after_one(
    times: list[int], size: int
) -> None:
    rules = KafkaSliding(size=size * MS, allowed_lateness=LATENESS)
    left = {inside(times, t - size, t) for t in times}
    right = {inside(times, t + 1, t + 1 + size) for t in times}
    assert found(KafkaOracle(rules), times, MS) == left | whole(right)


@definition
def test_the_last_output_of_a_time_looks_back_over_all_that_came(
    times: list[int], size: int
) -> None:
    rules = EventSliding(size=size, allowed_lateness=LATENESS)
    newest = max(times)
    last = inside([*times, newest], newest - size, newest)
    assert last in found(EventOracle(rules), [*times, newest])
