"""Rings of figures: which slots are kept, what is in them, and how much memory they take."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.engine.report.figure_history import (
    COARSE_STEP_S,
    FIGURES,
    FINE_STEP_S,
    MAX_COLUMNS,
    BatchFigures,
    FigureHistory,
    FigureKind,
)

START = 1_700_000_000.0  # a slot of both rings begins then


def batch(since: float, until: float, count: float, **values: float) -> BatchFigures:
    return BatchFigures(START + since, START + until, START + until, {"in": count}, values)


def read(history: FigureHistory, since: float, now: float, name: str = "in") -> list[float | None]:
    return history.read(START + since, START + now, lambda one: one == name).values[name]


def test_what_a_micro_batch_counts_is_spread_over_the_time_in_which_it_came() -> None:
    history = FigureHistory()
    history.record(batch(0, 2.5, 25))
    history.record(batch(2.5, 12.5, 200))
    assert read(history, 0, 12) == [15, 20, 20]
    # Before and behind it nothing is known.
    assert read(history, -10, 22) == [None, None, 15, 20, 20, None, None]


@given(
    st.lists(st.tuples(st.floats(0.1, 40), st.integers(0, 100_000)), min_size=1, max_size=20),
    st.floats(0, 30),
)
def test_nothing_is_lost_or_counted_twice(steps: list[tuple[float, int]], begin: float) -> None:
    history, at = FigureHistory(), begin
    for seconds, count in steps:
        history.record(batch(at, at + seconds, count))
        at += seconds
    for since, step in ((0, FINE_STEP_S), (-1_000, COARSE_STEP_S)):
        total = 0.0
        for number, rate in enumerate(read(history, since, at)):
            start = since + number * step
            seconds = min(at, start + step) - max(begin, start)
            total += 0 if rate is None else rate * max(seconds, 0)
        assert total == pytest.approx(sum(count for _, count in steps), rel=0.002, abs=0.01)


def test_the_last_quarter_of_an_hour_is_fine_and_the_hour_is_coarse() -> None:
    history = FigureHistory()
    for number in range(4_000):
        history.record(batch(number, number + 1, number))
    fine = history.read(START + 4_000 - 300, START + 4_000, lambda _: True)
    coarse = history.read(START + 4_000 - 3_600, START + 4_000, lambda _: True)
    assert (fine.step, coarse.step) == (FINE_STEP_S, COARSE_STEP_S)
    assert len(fine.values["in"]) == 61 and len(coarse.values["in"]) == 180
    assert fine.start == START + 3_700
    known = [one for one in coarse.values["in"] if one is not None]
    # The oldest are those of an hour ago, not of the beginning.
    assert len(known) == 179 and known[0] == pytest.approx(429.5, abs=20) and known[-1] > 3_980


def test_kinds_of_figures() -> None:
    history = FigureHistory()
    for number, value in enumerate((4.0, 9.0, 2.0)):
        names = ("event_time_lag", "batch_seconds", "open_windows")
        history.record(batch(number, number + 1, 1, **dict.fromkeys(names, value)))
    assert read(history, 0, 0, "event_time_lag") == [9]
    assert read(history, 0, 0, "batch_seconds") == [5]
    assert read(history, 0, 0, "open_windows") == [2]
    shares = BatchFigures(START + 5, START + 10, START + 9, {"busy:root.output": 4.0})
    history.record(shares)
    assert read(history, 5, 5, "busy:root.output") == [0.8]
    assert {one.kind for one in FIGURES} | {FigureKind.SHARE} == set(FigureKind)


def test_a_long_micro_batch_has_its_duration_in_all_of_its_slots() -> None:
    history = FigureHistory()
    history.record(batch(0, 5, 1, batch_seconds=5, open_windows=1))
    history.record(batch(5, 30, 1, batch_seconds=25, open_windows=2))
    assert read(history, 0, 34, "batch_seconds") == [5, 5, 25, 25, 25, 25, 25]
    history.interrupt(START + 60)
    history.record(batch(60, 65, 1, batch_seconds=5))
    # Nothing is known of the time in which the stream was down.
    assert read(history, 30, 65, "batch_seconds") == [25, *[None] * 5, 5, 5]


def test_a_clock_that_is_set_back_or_forward_leaves_no_false_figures() -> None:
    history = FigureHistory()
    history.record(batch(0, 10, 100))
    history.record(batch(90_000, 90_010, 100))
    assert read(history, 89_990, 90_009) == [None, None, 10, 10]
    history.record(batch(0, 10, 50))
    assert read(history, 0, 9) == [5, 5]
    assert all(one is None for one in read(history, 89_990, 90_009))


def test_memory_is_bounded_however_many_figures_come() -> None:
    history = FigureHistory()
    for number in range(500):
        names: Iterable[str] = (f"kafka_lag:orders/{number + n}" for n in range(16))
        history.record(batch(number, number + 1, 1, **dict.fromkeys(names, 1.0)))
    kept = history.to_fields()["rings"]
    assert all(len(ring["columns"]) <= MAX_COLUMNS for ring in kept)
    size = sum(len(body) for ring in kept for body in ring["columns"].values())
    assert size <= 2 * MAX_COLUMNS * 180 * 4
    assert read(history, 480, 499, "kafka_lag:orders/505")[-1] == 1


def test_figures_are_loaded_as_they_were() -> None:
    history, other = FigureHistory(), FigureHistory()
    history.record(batch(0, 7, 70, state_bytes=3e12))
    other.load_fields(history.to_fields(), START + 60)
    assert read(other, 0, 9) == read(history, 0, 9) == [10, 10]
    assert math.isclose(read(other, 5, 9, "state_bytes")[0] or 0, 3e12, rel_tol=1e-3)
    # What is of the future is of a clock that was wrong.
    early = FigureHistory()
    early.load_fields(history.to_fields(), START - 3_600)
    assert early.is_empty
