"""Aggregates of a window come to what their methods make of the whole array, however it is cut."""

import base64
import json
import math
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.bloblang.errors import QueryError
from streamer.bloblang.methods import aggregates, arrays
from streamer.bloblang.methods import statistics as methods
from streamer.window.aggregate import digit_sums
from streamer.window.aggregate.accumulator import select_values
from streamer.window.aggregate.registry import make_accumulator
from tests.examples import examples

INFINITY = math.inf
NUMBERS = st.one_of(
    st.integers(-9, 9),
    st.integers(-(2**60), 2**60),
    st.floats(),
    st.floats(-1e3, 1e3),
    st.sampled_from([1e308, -1e308, 5e-324, 2**53 + 1, 0.1, -0.0]),
)
TEXTS = st.sampled_from(["a", "b", "é", "\x00n1", ""])
SPOILERS = st.sampled_from([None, True, {"v": None}])
ELEMENTS = st.fixed_dictionaries({"v": st.one_of(st.integers(0, 3), st.floats(0, 3))})


def value_of(element):
    return element["v"] if isinstance(element, dict) else None


SHARES = (0.0, 0.07, 0.3, 0.5, 0.95, 1.0)
CASES = {
    "avg()": (NUMBERS, methods.avg),
    "stddev_pop()": (NUMBERS, methods.stddev_pop),
    "stddev_samp()": (NUMBERS, methods.stddev_samp),
    "median()": (NUMBERS, lambda kept: [methods.percentile(kept, share) for share in SHARES]),
    "percentile_disc(0.5)": (
        NUMBERS,
        lambda kept: [methods.percentile_disc(kept, share) for share in SHARES],
    ),
    "percentile_approx(0.5)": (
        NUMBERS,
        lambda kept: [methods.percentile_approx(kept, share) for share in SHARES],
    ),
    "approx_count_distinct()": (NUMBERS | TEXTS, methods.approx_count_distinct),
    "min_by(e -> e.v)": (ELEMENTS, lambda array: aggregates.min_by(array, value_of)),
    "max_by(e -> e.v)": (ELEMENTS, lambda array: aggregates.max_by(array, value_of)),
    "slice(0, 3)": (ELEMENTS, arrays.slice_(0, 3)),
    "slice(-3)": (ELEMENTS, arrays.slice_(-3, None)),
}
SHARED = ("median()", "percentile_disc(0.5)", "percentile_approx(0.5)")


def accumulator_of(call):
    mapping = 'root = if batch_index() == 0 { json("x").from_all().%s } else { deleted() }'
    found = analyze_pre_aggregation(mapping % call)
    assert isinstance(found, PreAggregation), found
    [part] = found.aggregates
    return make_accumulator(part)


def outcome(finish, make, *arguments):
    try:
        return repr(finish(make(*arguments)))
    except QueryError as e:
        return f"failed: {str(e).removeprefix('method from_all: ')}"


def columns_of(accumulator, values, groups, count, cuts, by_twos):
    """Aggregate values in packs, cut anywhere, and merge these in some order."""
    bounds = [0, *sorted(cuts), len(values)]
    packs = []
    for first, last in zip(bounds, bounds[1:], strict=False):
        if first == last:
            continue
        part = accumulator.concat_columns(
            [accumulator.make_column(values[first:last]), accumulator.make_column([])]
        )
        part = select_values(part, np.arange(last - first))
        arrivals = np.arange(first, last)
        state = accumulator.make_state(part, groups[first:last], count, arrivals)
        counts = np.bincount(groups[first:last], minlength=count)
        packs.append((accumulator.decode_state(accumulator.encode_state(state), 0), counts))
    while len(packs) > 1:
        some = packs[:2] if by_twos else packs
        states, counts = zip(*some, strict=True)
        before = list(np.cumsum([np.zeros(count, np.int64), *counts], axis=0)[:-1])
        merged = accumulator.merge_states(
            list(states), [np.arange(count)] * len(some), before, count
        )
        packs = [(merged, sum(counts)), *packs[len(some) :]]
    return packs[0][0]


@pytest.mark.parametrize("call", CASES)
@settings(max_examples=examples(40, 400), deadline=None)
@given(data=st.data())
def test_a_window_comes_to_what_the_method_makes_of_all_values(call, data):
    values_of, method = CASES[call]
    spoilt = data.draw(st.sampled_from([False, False, True]))
    values_of = values_of | SPOILERS if spoilt else values_of
    values = data.draw(st.lists(values_of, min_size=1, max_size=12))
    of_groups = data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values)))
    cuts = data.draw(st.lists(st.integers(0, len(values)), max_size=3))
    groups = np.array(of_groups, np.int64)
    accumulator = accumulator_of(call)
    made = columns_of(accumulator, values, groups, 3, cuts, data.draw(st.booleans()))
    prepared = accumulator.prepare(values)
    finish = method if call in SHARED else (lambda kept: kept)
    for group in set(of_groups):
        mine = [at for at, of in enumerate(of_groups) if of == group]
        halves = [accumulator.empty_state, accumulator.empty_state]
        for place, at in enumerate(mine):
            which = data.draw(st.integers(0, 1))
            halves[which] = accumulator.add(halves[which], prepared[at], at, place)
        dumped = [json.loads(json.dumps(accumulator.dump(half))) for half in halves]
        merged = accumulator.merge(*map(accumulator.load, dumped))
        kept = accumulator.take_groups(made, np.array([group]))
        found = [
            outcome(finish, accumulator.result_of_group, made, group),
            outcome(finish, accumulator.result_of_group, kept, 0),
        ]
        wanted = outcome(method, list, [values[at] for at in mine])
        assert found == [wanted] * 2
        # The index of a session that has become one with another counts in its own messages.
        joined = outcome(finish, accumulator.result_of, merged)
        assert re.sub(r"index \d+", "index", joined) == re.sub(r"index \d+", "index", wanted)


@pytest.mark.parametrize("call", CASES)
def test_an_earlier_state_of_a_window_stays_as_it_was(call):
    values = {"slice": [{"v": at} for at in range(9)]}.get(call[:5], list(range(9)))
    if "_by" in call:
        values = [{"v": at % 4} for at in range(9)]
    accumulator = accumulator_of(call)
    method = CASES[call][1]
    finish = method if call in SHARED else (lambda kept: kept)
    states, state = [], accumulator.empty_state
    for at, value in enumerate(accumulator.prepare(values)):
        state = accumulator.add(state, value, at, at)
        states.append(state)
    for at in (8, 3, 0, 5):
        found = finish(accumulator.result_of(states[at]))
        assert found == method(values[: at + 1])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=9))
@example([1e308, 1e308])
@example([5e-324, -5e-324, 5e-324])
@example([1e16, 1.0, 1.0])
def test_deviations_are_the_exact_ones(numbers):
    for mine, theirs in (
        (methods.stddev_pop, statistics.pstdev),
        (methods.stddev_samp, statistics.stdev),
    ):
        found, wanted = mine(numbers), theirs(numbers)
        assert abs(found - wanted) <= math.ulp(wanted)


@settings(max_examples=examples(20, 200), deadline=None)
@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=50), st.floats(0, 1))
def test_an_approximate_percentile_is_within_its_bound(numbers, share):
    exact, approximate = (
        methods.percentile_disc(numbers, share),
        methods.percentile_approx(numbers, share),
    )
    assert 0 <= exact - approximate <= exact / 128


@pytest.mark.parametrize("count", [0, 1, 50, 400])
def test_few_distinct_values_are_counted_nearly_exactly(count):
    found = methods.approx_count_distinct([f"user-{at}" for at in range(count)] * 2)
    assert abs(found - count) <= count // 100


@pytest.mark.parametrize("count", [3_000, 10_000, 100_000])
def test_many_distinct_values_are_within_three_standard_errors(count):
    found = methods.approx_count_distinct([f"user-{at}" for at in range(count)])
    assert abs(found - count) <= 3 * 0.0163 * count


@pytest.mark.parametrize("number", [2**62, -(2**62), -1.5])
@pytest.mark.parametrize("by_twos", [True, False])
def test_digits_are_carried_before_they_overflow(monkeypatch, number, by_twos):
    monkeypatch.setattr(digit_sums, "_CARRY_LIMIT", 1 << 33)
    for call, wanted in (("avg()", number), ("stddev_pop()", 0)):
        accumulator = accumulator_of(call)
        groups = np.zeros(64, np.int64)
        made = columns_of(accumulator, [number] * 64, groups, 1, range(64), by_twos)
        assert accumulator.result_of_group(made, 0) == wanted


STATES = Path(__file__).parents[1] / "data" / "aggregate_states.json"
"""What version 0.2 keeps of some values, by aggregate: of groups as bytes, of a window as JSON."""


@pytest.mark.parametrize("call", CASES)
def test_states_of_earlier_versions_are_read(call):
    written = json.loads(STATES.read_text())[call]
    accumulator = accumulator_of(call)
    finish = CASES[call][1] if call in SHARED else (lambda kept: kept)
    groups = accumulator.decode_state(base64.b64decode(written["groups"]), 0)
    window = accumulator.load(written["window"])
    for found in (accumulator.result_of_group(groups, 0), accumulator.result_of(window)):
        assert finish(found) == written["result"]
    if "slice" in call:
        assert accumulator.result_of_group(groups, 1) == [1, None]
    else:
        with pytest.raises(QueryError, match="index 1"):
            accumulator.result_of_group(groups, 1)
