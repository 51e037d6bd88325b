"""Windows that fold give what windows that keep every message give, whatever comes in."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.engine.planner.planner_channels import AggregatesFrom, next_aggregates_from
from streamer.plan.window_plan import Aggregation
from tests.examples import examples

from .folded import T, outcome
from .stream import Run, State, write_lines

SHIFT_SIZE = 8  # bytes that stand before a pack in the store
CONFIG = """
input:
  file: {paths: [cars.jsonl]}
buffer:
  system_window:
    timestamp_mapping: %s
    size: 10s
    %s
pipeline:
  processors:
%s
    - mapping: |
        root = if batch_index() == 0 {
          {
            "light": json("light"),
            "end": meta("window_end_timestamp"),
            "count": batch_size(),
            "length": json("p").from_all().length().catch(this),
            "plates": json("plate").from_all().unique().length().catch(this),
            "which": json("plate").from_all().unique().catch(this),
            "sum": json("p").from_all().sum().catch(this),
            "least": json("p").from_all().min().catch(this),
            "most": json("deep.p").from_all().max().catch(this),
          }
        } else { deleted() }
%s
spark: {shards: %d, master: "local[2]"}
"""
BY_LIGHT = "    - group_by_value: {value: '${! json(\"light\") }'}"
BARE = """
    - mapping: |
        root = if batch_index() == 0 {
          {
            "first": this.light,
            "sum": json("p").from_all().sum() + json("deep.p").from_all().sum(),
            "plates": json("plate").from_all().unique(),
          }
        } else { deleted() }
    - mapping: 'root = if errored() { {"failed": error(), "of": this} } else { this }'
"""
NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.sampled_from([2**53 + 1, 2**62, 2**63, 2**64 + 1, -(2**63), 0.5, 1.0, -0.0, 1e300]),
)
VALUES = st.one_of(
    NUMBERS,
    st.sampled_from(["a", "b", "", "\x00n1", "\x00", "é", None, True, [], {"x": 1}, "1"]),
)
GOOD = st.fixed_dictionaries(
    {"light": st.sampled_from("ab"), "plate": st.sampled_from("xyz"), "p": st.integers(0, 9)},
    optional={"deep": st.fixed_dictionaries({"p": st.integers(0, 9)})},
)
ODD = st.fixed_dictionaries(
    {},
    optional={
        "light": st.one_of(st.sampled_from("ab"), VALUES),
        "plate": VALUES,
        "p": VALUES,
        "deep": st.one_of(VALUES, st.fixed_dictionaries({"p": NUMBERS})),
    },
)
DOCUMENT = st.one_of(GOOD, GOOD, GOOD, ODD)


@st.composite
def lines(draw, timed=True):
    """Some documents with times near T, and lines that are none."""
    made = []
    for document in draw(st.lists(DOCUMENT, max_size=12)):
        time = draw(st.sampled_from([1, 2.5, 7, 9, 10, 10.5, 13, 25, -4, None, "x"]))
        if isinstance(time, int | float):
            document = {**document, "ts": T + time}
        elif time == "x":
            document = {**document, "ts": time}
        made.append(document if draw(st.integers(0, 19)) else b'{"ts": ')
    return made


STEPS = st.lists(
    st.tuples(st.integers(0, 12), lines(), st.sampled_from([1, 3, 100])), min_size=1, max_size=4
)


def rounded(value):
    """Return what must be equal: all but the rounding of sums, and where an error's message was.

    A message's index in its group is not known where packs that overlap in time were folded.
    """
    text = re.sub(r"index \d+", "index N", json.dumps(value, default=repr))

    def near(number):
        return f"{float(number):.9g}"

    # A sum of numbers beyond 2^53 is rounded, though it is written as an integer.
    return json.loads(text, parse_float=near, parse_int=near)


@pytest.mark.parametrize(
    ("window", "group", "more", "time"),
    [
        ("", BY_LIGHT, "", "root = this.ts"),
        ("slide: 2s", BY_LIGHT, "", "root = this.ts"),
        ("allowed_lateness: 3s", "", "", "root = this.ts"),
        ("", "", BARE, "root = now()"),
        ("slide: 5s", BY_LIGHT, "", "root = if this.ts == null { now() } else { this.ts }"),
    ],
)
@settings(max_examples=examples(10, 100), deadline=None)
@given(steps=STEPS, shards=st.integers(1, 3))
def test_folded_windows_give_what_whole_ones_give(
    tmp_path_factory, monkeypatch_module, window, group, more, time, steps, shards
):
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    steps = sorted(steps, key=lambda step: step[0])
    text = CONFIG % (time, window, group, more, shards)
    if more is BARE:
        text = text.replace(text[text.index("    - mapping: |") : text.index(BARE)], "")
    folded = outcome(directory, text, steps, folds=True)
    whole = outcome(directory, text, steps, folds=False)
    assert rounded(folded) == rounded(whole)


COUNTING = CONFIG % ("root = this.ts", "allowed_lateness: 1s", BY_LIGHT, "", 2)


def test_a_window_finishes_on_the_mapping_that_it_began_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cars = tmp_path / "cars.jsonl"
    write_lines(cars, [{"ts": T + 1, "light": "a", "plate": "x", "p": 1}])
    first = Run(COUNTING)
    first.step((T + 2) * SECOND)
    other = COUNTING.replace('"count": batch_size()', '"new": json("p").from_all().sum()')
    again = Run(other, first.state, "second")
    assert again.plan.aggregation.identity != first.plan.aggregation.identity
    # In the window that is open, and in one that is not.
    write_lines(cars, [{"ts": T + t, "light": "a", "plate": "y", "p": 2} for t in (3, 12)])
    again.step((T + 4) * SECOND)
    write_lines(cars, [{"ts": T + t, "light": "a", "plate": "z", "p": 4} for t in (5, 13)])
    again.step((T + 6) * SECOND)
    again.step((T + 11) * SECOND)
    [old] = again.printed()
    assert (old["count"], old["sum"], old["which"]) == (3, 7, ["x", "y", "z"])
    again.step((T + 21) * SECOND)
    [new] = again.printed()
    assert "count" not in new and new["new"] == new["sum"] == 6


def test_the_offset_says_since_when_windows_fold_for_a_new_mapping():
    begun = next_aggregates_from(AggregatesFrom(None, None), "m1", None, known=False)
    assert begun == AggregatesFrom("m1", None)
    assert next_aggregates_from(begun, "m1", 90, known=True) == begun
    # Another mapping waits for how far the old one's windows reach.
    assert next_aggregates_from(begun, "m2", None, known=False) == begun
    assert next_aggregates_from(begun, "m2", 90, known=True) == AggregatesFrom("m2", 90)
    # A config without a mapping that folds leaves it as it is.
    assert next_aggregates_from(begun, "", 90, known=True) == begun


def test_groups_that_are_hardly_bigger_than_a_message_are_kept_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cars = [{"ts": T + 1, "light": f"l{i}", "plate": "x", "p": 1} for i in range(10_000)]
    write_lines(tmp_path / "cars.jsonl", cars)
    run = Run(COUNTING)
    run.step((T + 2) * SECOND)
    sizes = [len(value) for store in run.state.stores for value in store.values.values()]
    run.step((T + 11) * SECOND)
    assert len(run.printed()) == 10_000
    assert sum(sizes) < 10_000 * 40


def test_state_of_folded_windows_does_not_grow_with_their_messages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cars = tmp_path / "cars.jsonl"
    cars.touch()
    run = Run(COUNTING)
    sizes = []
    for _ in range(2):
        made = [{"ts": T + 1, "light": f"l{i % 50}", "plate": "x", "p": 1} for i in range(20_000)]
        write_lines(cars, made)
        run.step((T + 2) * SECOND)
        values = [store.values.values() for store in run.state.stores]
        sizes.append(sum(len(value) for some in values for value in some))
    assert sizes[1] < 2 * sizes[0] < 20_000
    run.step((T + 11) * SECOND)
    assert {one["count"] for one in run.printed()} == {800}


def test_small_packs_of_folded_groups_become_few_and_stay_small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cars = tmp_path / "cars.jsonl"
    cars.touch()
    run = Run(COUNTING)
    for number in range(100):
        made = [{"ts": T + 1, "light": f"l{i}", "plate": f"p{number}", "p": 1} for i in range(20)]
        write_lines(cars, made)
        run.step(T * SECOND + SECOND + number)
    packs = [seq for store in run.state.stores for _, seq in store.values if seq >= 0]
    # Of a hundred micro-batches, at most seven packs of each of three levels in each shard.
    assert len(packs) <= 2 * 3 * 7
    held = sum(status["held_bytes"] for status in run.delivery.statuses.values())
    assert held < 60_000
    run.step((T + 11) * SECOND)
    got = run.printed()
    assert len(got) == 20
    assert {(one["count"], one["sum"], one["plates"]) for one in got} == {(100, 100, 100)}
    assert {tuple(one["which"]) for one in got} == {tuple(f"p{i}" for i in range(100))}


def test_a_state_that_is_held_by_an_earlier_start_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cars = tmp_path / "cars.jsonl"
    write_lines(cars, [{"ts": T + 1, "light": "a", "plate": "x", "p": 1}])
    first = Run(COUNTING)
    first.plan = replace(first.plan, aggregation=Aggregation(None))
    first.step((T + 2) * SECOND)
    again = Run(COUNTING, State(first.state.offset, first.state.stores, 1), "second")
    write_lines(cars, [{"ts": T + 3, "light": "a", "plate": "y", "p": 2}])
    again.step((T + 4) * SECOND)
    again.step((T + 11) * SECOND)
    [one] = again.printed()
    assert (one["count"], one["sum"], one["which"]) == (2, 3, ["x", "y"])


@pytest.mark.parametrize("folds", [True, False])
def test_a_checkpoint_that_a_newer_streamer_wrote_is_refused(tmp_path, monkeypatch, folds):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "cars.jsonl", [{"ts": T + 1, "light": "a", "plate": "x", "p": 1}])
    run = Run(COUNTING)
    if not folds:
        run.plan = replace(run.plan, aggregation=Aggregation(None))
    run.step((T + 2) * SECOND)
    packs = [
        (store, place) for store in run.state.stores for place in store.values if place[1] >= 0
    ]
    assert packs
    for store, place in packs:
        held = bytearray(store.values[place])
        held[SHIFT_SIZE] = 200  # the first byte of a pack is its format
        store.values[place] = bytes(held)
    with pytest.raises(StreamerError, match="format 200, which a newer streamer wrote.*run the"):
        run.step((T + 11) * SECOND)
