"""Parts that take some messages at once come to what they come to one by one."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
