"""Parts that take some messages at once come to what they come to one by one."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.timestamps import Timestamp
from streamer.window.folds.distinct import Distinct
from streamer.window.folds.part import Spoiler
from streamer.window.folds.running.distinct import RunningDistinct
from streamer.window.folds.running.numbers import RunningExtreme, RunningSum
from streamer.window.folds.running.part import Running, Span, adding_all
from streamer.window.folds.running.picked import RunningCount, RunningPicked
from tests.examples import examples

SPOILER = Spoiler(0, 0, "no number")
NUMBERS = st.integers(-5, 5) | st.floats(-1e300, 1e300) | st.just(SPOILER)

PARTS: dict[str, tuple[Running, st.SearchStrategy]] = {
    "sum": (RunningSum(), NUMBERS),
    "min": (RunningExtreme("min", "it"), NUMBERS),
    "count": (RunningCount(), st.none()),
    "first": (RunningPicked(last=False), st.integers()),
    "last": (RunningPicked(last=True), st.integers()),
    "distinct": (RunningDistinct(False, "it"), st.sampled_from("abcd") | st.just(SPOILER)),
    "unique": (RunningDistinct(True, "it"), st.integers(0, 3) | st.sampled_from("ab")),
}


@pytest.mark.parametrize("name", PARTS)
@settings(max_examples=examples(40, 200))
@given(data=st.data())
def test_messages_taken_at_once_come_to_what_they_come_to_one_by_one(name, data):
    part, values = PARTS[name]
    column = data.draw(st.lists(values, min_size=1, max_size=9))
    arrivals = [3 + 2 * at for at in range(len(column))]
    cuts = data.draw(st.lists(st.integers(0, len(column)), max_size=3))
    single, together = part.empty, copy.deepcopy(part.empty)
    for at, value in enumerate(column):
        single = part.add(single, value, arrivals[at], at)
    bounds = [0, *sorted(cuts), len(column)]
    for first, last in zip(bounds, bounds[1:], strict=False):
        if first < last:
            span = Span(first, last, arrivals)
            together = adding_all(part)(together, column, span, first)
    assert together == single


TIMES = [
    Timestamp(5, 3600, "CET", "Europe/Berlin"),
    Timestamp(5),
    "1970-01-01T01:00:00.000000005+01:00",
    Timestamp(5, 3600, "", ""),
    Timestamp(7),
    "a",
]


@pytest.mark.parametrize("ordered", [True, False])
def test_distinct_times_are_told_apart_by_their_texts(ordered):
    part = RunningDistinct(ordered, "it")
    state = part.empty
    for arrival, value in enumerate(part.prepared(TIMES)):
        state = part.add(state, value, arrival, arrival)
    again = part.load(part.dump(state))
    wanted = [TIMES[0], TIMES[1], TIMES[4], "a"] if ordered else 4
    assert [part.value(state), part.value(again)] == [wanted, wanted]


@pytest.mark.parametrize("ordered", [True, False])
def test_distinct_times_of_columns_are_told_apart_by_their_texts(ordered):
    part = Distinct(ordered, "it")
    values = [value for value in TIMES if type(value) is Timestamp] + ["a"]
    column = part.gathered([part.column(values)])
    arrivals = np.arange(len(values))
    state = part.state(column, np.zeros(len(values), np.int64), 1, arrivals)
    again = part.read(part.write(state), 0)
    wanted = [TIMES[0], TIMES[1], TIMES[4], "a"] if ordered else 4
    assert [part.value(state, 0), part.value(again, 0)] == [wanted, wanted]
    if ordered:
        assert str(part.value(again, 0)[0]) == str(TIMES[0])


def test_distinct_columns_count_a_time_and_its_text_once():
    part = Distinct(False, "it")
    column = part.gathered([part.column(TIMES)])
    state = part.state(column, np.zeros(len(TIMES), np.int64), 1, np.arange(len(TIMES)))
    assert part.value(state, 0) == 4
