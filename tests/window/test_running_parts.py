"""Parts that take some messages at once come to what they come to one by one."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.timestamps import Timestamp
from streamer.window.aggregate.accumulator import Accumulator, InvalidValue, RowSpan
from streamer.window.aggregate.count import CountAccumulator
from streamer.window.aggregate.distinct import DistinctAccumulator
from streamer.window.aggregate.first_last import FirstLastAccumulator
from streamer.window.aggregate.sum_min_max import ExtremeAccumulator, SumAccumulator
from tests.examples import examples

SPOILER = InvalidValue(0, 0, "no number")
NUMBERS = st.integers(-5, 5) | st.floats(-1e300, 1e300) | st.just(SPOILER)

PARTS: dict[str, tuple[Accumulator, st.SearchStrategy]] = {
    "sum": (SumAccumulator(), NUMBERS),
    "min": (ExtremeAccumulator("min", "it"), NUMBERS),
    "count": (CountAccumulator(), st.none()),
    "first": (FirstLastAccumulator(last=False), st.integers()),
    "last": (FirstLastAccumulator(last=True), st.integers()),
    "distinct": (DistinctAccumulator(False, "it"), st.sampled_from("abcd") | st.just(SPOILER)),
    "unique": (DistinctAccumulator(True, "it"), st.integers(0, 3) | st.sampled_from("ab")),
}


@pytest.mark.parametrize("name", PARTS)
@settings(max_examples=examples(40, 200))
@given(data=st.data())
def test_messages_taken_at_once_come_to_what_they_come_to_one_by_one(name, data):
    part, values = PARTS[name]
    column = data.draw(st.lists(values, min_size=1, max_size=9))
    arrivals = [3 + 2 * at for at in range(len(column))]
    cuts = data.draw(st.lists(st.integers(0, len(column)), max_size=3))
    single, together = part.empty_state, copy.deepcopy(part.empty_state)
    for at, value in enumerate(column):
        single = part.add(single, value, arrivals[at], at)
    bounds = [0, *sorted(cuts), len(column)]
    for first, last in zip(bounds, bounds[1:], strict=False):
        if first < last:
            span = RowSpan(first, last, arrivals)
            together = part.add_all(together, column, span, first)
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
    part = DistinctAccumulator(ordered, "it")
    state = part.empty_state
    for arrival, value in enumerate(part.prepare(TIMES)):
        state = part.add(state, value, arrival, arrival)
    again = part.load(part.dump(state))
    wanted = [TIMES[0], TIMES[1], TIMES[4], "a"] if ordered else 4
    assert [part.result_of(state), part.result_of(again)] == [wanted, wanted]


@pytest.mark.parametrize("ordered", [True, False])
def test_distinct_times_of_columns_are_told_apart_by_their_texts(ordered):
    part = DistinctAccumulator(ordered, "it")
    values = [value for value in TIMES if type(value) is Timestamp] + ["a"]
    column = part.concat_columns([part.make_column(values)])
    arrivals = np.arange(len(values))
    state = part.make_state(column, np.zeros(len(values), np.int64), 1, arrivals)
    again = part.decode_state(part.encode_state(state), 0)
    wanted = [TIMES[0], TIMES[1], TIMES[4], "a"] if ordered else 4
    assert [part.result_of_group(state, 0), part.result_of_group(again, 0)] == [wanted, wanted]
    if ordered:
        assert str(part.result_of_group(again, 0)[0]) == str(TIMES[0])


def test_distinct_columns_count_a_time_and_its_text_once():
    part = DistinctAccumulator(False, "it")
    column = part.concat_columns([part.make_column(TIMES)])
    state = part.make_state(column, np.zeros(len(TIMES), np.int64), 1, np.arange(len(TIMES)))
    assert part.result_of_group(state, 0) == 4
