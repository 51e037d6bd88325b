"""Whatever a mapping asks of all messages, in any words that fold: as if it had seen them all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples

from .folded import T, line, outcome, rounded

CONFIG = """
input:
  file: {paths: [cars.jsonl]}
buffer:
  system_window:
    timestamp_mapping: root = this.ts.or(now())
    size: 10s
    slide: %s
pipeline:
  processors:
    %s
    - mapping: |
        %s
        root = if batch_index() == 0 {
          [ %s ]
        } else { deleted() }
spark: {shards: %d, master: "local[2]"}
"""
GROUPS = """- group_by_value: {value: '${! json("light") }'}"""
SOURCES = [
    'json("p")',
    'json("p")',
    'json("plate")',
    'json("deep.p")',
    'json("items")',
    'json("items.*.price")',
    "json()",
    '(json("p") * 2)',
    'json("p").or(json("plate"))',
    'json("deep").catch("none")',
    '(if json("p") > 3 { "many" } else { json("plate") })',
    '(match json("plate") { this == "x" => 1, "y" => "why", _ => deleted() })',
    'json("items").map_each(i -> i.price.number(0)).sum()',
    '(json("p").string() + json("plate").uppercase())',
    'json("plate").hash("sha1")',
    '(json("p") - 2).log()',
    '{"plate": json("plate"), "p": json("p")}',
]
STEPS = [
    ".map_each(x -> x + 1)",
    ".map_each(x -> x)",
    ".map_each(x -> if x == 1 { deleted() } else { x })",
    ".map_each(x -> if x != 2 { x.string() })",
    ".map_each(x -> x.(y -> y.p | y.plate | y))",
    ".map_each(i -> i.map_each(j -> j.price).sum())",
    ".filter(x -> x > 2)",
    '.filter(x -> x.type() == "number")',
    '.filter(this != "x")',
]
ENDS = [
    ".sum()",
    ".min()",
    ".max()",
    ".length()",
    ".unique()",
    ".unique().length()",
    ".unique().top_k(2)",
    ".unique().top_k(1)",
    ".unique().top_k(2, x -> x.string())",
    ".index(0)",
    ".index(-1)",
    ".any(x -> x > 3)",
    ".any(x -> x)",
    '.all(x -> x.type() == "number")',
    ".all(x -> x > 0)",
    ".count_by()",
    ".count_by(x -> x.p | x)",
    ".count_by(x -> x % 2)",
    ".count_by(x -> x.type()).key_values().top_k(1, e -> e.value)",
    ".top_k(2)",
    ".top_k(2, x -> x.string().length())",
    ".top_k(3, x -> 0 - x)",
    ".top_k(1, x -> x.p)",
    ".avg()",
    ".stddev_pop()",
    ".stddev_samp()",
    ".median()",
    ".percentile(0.9)",
    ".percentile_disc(0.3)",
    ".percentile_approx(0.7)",
    ".approx_count_distinct()",
    ".min_by(x -> x.p | x)",
    ".max_by(x -> x.p | x)",
    ".slice(0, 2)",
    ".slice(-2)",
]
PARTS = st.one_of(
    st.builds(
        lambda source, steps, end: f"{source}.from_all(){''.join(steps)}{end}",
        st.sampled_from(SOURCES),
        st.lists(st.sampled_from(STEPS), max_size=2),
        st.sampled_from(ENDS),
    ),
    st.builds(lambda source, at: f"{source}.from({at})", st.sampled_from(SOURCES), st.just(-1)),
    st.sampled_from(['json("p").from(0)', "batch_size()", "json().from_all().index(-1)"]),
)
# Where a part stands decides what is said before its error.
AROUND = [
    "{}",
    "{}",
    "[1].map_each(one -> {})",
    "this.light.(light -> {})",
    "[2].any(two -> {} == two)",
]
NUMBERS = st.one_of(
    st.integers(0, 4),
    st.sampled_from([2**53 + 1, 2**63, 2**64 + 1, -(2**63), 0.5, 1.0, 1e300]),
)
VALUES = st.one_of(
    NUMBERS, st.sampled_from(["x", "", "\x00n1", "\x00s", "é", None, True, [], {"p": 1}, "1"])
)
GOOD = st.fixed_dictionaries(
    {"plate": st.sampled_from("xyz"), "p": st.integers(0, 9)},
    optional={
        "deep": st.fixed_dictionaries({"p": NUMBERS}),
        "items": st.lists(st.fixed_dictionaries({"price": st.integers(0, 9)}), max_size=2),
    },
)
ODD = st.dictionaries(st.sampled_from(["plate", "p", "deep", "items"]), VALUES)
ONES = st.one_of(GOOD, GOOD, GOOD, ODD)


@st.composite
def lines(draw):
    """Some documents with times near T, and some lines that are none."""
    made = []
    for document in draw(st.lists(ONES, max_size=10)):
        light = draw(st.sampled_from("aab"))
        time = T + draw(st.sampled_from([1, 2.5, 7, 9, 10, 13]))
        told = {**document, "light": light, "ts": time}
        made.append(line(told, draw(st.booleans()), not draw(st.integers(0, 9))))
    return made


STEPS_OF_STREAM = st.lists(
    st.tuples(st.integers(0, 9), lines(), st.sampled_from([1, 3, 100])), min_size=1, max_size=3
)


# In a sliding window panes overlap, and where in its group a message stands is not known; nor is
# it when some messages are held whole, since they are no documents.
@pytest.mark.parametrize(
    ("slide", "group", "places"), [('""', GROUPS, True), ("5s", GROUPS, False), ('""', "", False)]
)
@settings(max_examples=examples(10, 200), deadline=None)
@given(
    parts=st.lists(st.tuples(PARTS, st.sampled_from(AROUND)), min_size=1, max_size=4),
    steps=STEPS_OF_STREAM,
    shards=st.integers(1, 2),
)
def test_a_folded_part_is_what_the_messages_make_it(
    tmp_path_factory, monkeypatch_module, slide, group, places, parts, steps, shards
):
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    steps = sorted(steps, key=lambda step: step[0])
    asked = ", ".join(f"({around.format(part)}).catch(this)" for part, around in parts)
    text = CONFIG % (slide, group, "", asked, shards)
    folded = outcome(directory, text, steps, folds=True)
    whole = outcome(directory, text, steps, folds=False)
    assert rounded(folded, places) == rounded(whole, places)


ARRAYS = st.builds(
    lambda source, steps: f"{source}.from_all(){''.join(steps)}",
    st.sampled_from(SOURCES),
    st.lists(st.sampled_from(STEPS), max_size=1),
)
READ_PARTS = st.builds(
    lambda variable, steps, end: f"${variable}{''.join(steps)}{end}",
    st.sampled_from(["all", "some"]),
    st.lists(st.sampled_from(STEPS), max_size=1),
    st.sampled_from(ENDS),
)


@settings(max_examples=examples(10, 200), deadline=None)
@given(
    arrays=st.tuples(ARRAYS, st.sampled_from(["$all", "$all.filter(x -> x != $two)"]) | ARRAYS),
    parts=st.lists(st.tuples(READ_PARTS, st.sampled_from(AROUND)), min_size=1, max_size=4),
    steps=STEPS_OF_STREAM,
)
def test_an_array_that_a_variable_holds_folds_like_the_expression(
    tmp_path_factory, monkeypatch_module, arrays, parts, steps
):
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    steps = sorted(steps, key=lambda step: step[0])
    first, second = arrays
    lets = f"let two = 2\n        let all = {first}\n        let some = {second}"
    asked = ", ".join(f"({around.format(part)}).catch(this)" for part, around in parts)
    text = CONFIG % ('""', GROUPS, lets, asked, 1)
    folded = outcome(directory, text, steps, folds=True)
    whole = outcome(directory, text, steps, folds=False)
    assert rounded(folded, places=True) == rounded(whole, places=True)


def test_an_error_that_holds_bytes_is_kept_as_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = 'json("plate").hash("sha1").from_all().map_each(x -> x.string())'
    asked = ", ".join(f"{values}.{end}().catch(this)" for end in ("max", "sum", "min"))
    text = CONFIG % ('""', "", "", asked, 1)
    steps = [(1, [{"plate": plate, "ts": T + 1}], 1) for plate in "xy"] + [(10, [], 1)]
    folded = outcome(tmp_path, text, steps, folds=True)
    assert folded == outcome(tmp_path, text, steps, folds=False)
    [[*errors]], *_ = folded
    assert len(errors) == 3 and all("string" in error for error in errors), errors


def test_what_is_not_a_number_is_like_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = 'json("p").log().from_all().unique()'
    text = CONFIG % ('""', "", "", f"{values}, {values}.length()", 1)
    steps = [(second, [{"p": p, "ts": T + 1} for p in (-1, -2, 1)], 1) for second in (1, 2)]
    steps.append((10, [], 1))
    for folds in (True, False):
        [[[values, number]], *_] = [
            batches for batches in outcome(tmp_path, text, steps, folds) if batches
        ]
        assert (values, number) == ([None, None, 0, None, None], 5)
