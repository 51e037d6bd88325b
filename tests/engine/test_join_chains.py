"""Joins of three streams and more: exact, however the stream is cut, over any number of shards."""

from __future__ import annotations

from collections import Counter
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config.load import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan
from streamer.spark.checkpoint.rescaling import rescale_buffers
from tests.examples import examples
from tests.window.oracle.join_chain import Event, JoinChainOracle, JoinRules

INPUTS = ("a", "b", "c", "d")
Sent = tuple[str, Event]


def config(rules: list[JoinRules]) -> str:
    """Return a chain of joins of as many inputs and one more."""
    lines = ["input:", "  broker:", "    inputs:"]
    for name in INPUTS[: len(rules) + 1]:
        lines.append(f"      - {{ label: {name}, generate: {{ mapping: 'root = {{}}' }} }}")
    lines.append("buffers:")
    for number, one in enumerate(rules):
        left = "a" if number == 0 else f"join{number - 1}"
        width = number + 1
        lefts = (
            "[this.left]" if number == 0 else f"this.left.names | [{', '.join(['null'] * width)}]"
        )
        lefts = lefts.replace("this.left]", "this.left.name]")
        scope = "clock_scope: input, source_idle_timeout: 0s, " if one.waits else ""
        lines += [
            f"  - label: join{number}",
            f"    window_join: {{ left: {left}, right: {INPUTS[number + 1]}, {scope}"
            f"timestamp_mapping: root = this.time, key_mapping: root = this.key, "
            f"before: {one.before}s, after: {one.after}s, type: {one.type}, "
            f"allowed_lateness: {one.lateness}s }}",
            "    output: { drop: {} }",
            "    pipeline:",
            "      processors:",
            "        - mapping: |",
            "            root.key = this.left.key | this.right.key",
            f"            root.names = ({lefts}).append(this.right.name)",
        ]
    return "\n".join(lines)


def run_stream(
    rules: list[JoinRules], events: list[Sent], cuts: list[int], shards: list[int]
) -> tuple[list[Counter[tuple[str | None, ...]]], int]:
    """Run a chain to its end; give what came out of each join, and how many were late.

    `shards` says by micro-batch, in turns, how many shards there are.
    """
    sent = [
        ScriptedMessage(
            Message.from_value({"time": event.time, "key": event.key, "name": event.names[0]}),
            input=source,
        )
        for source, event in events
    ]
    plan = make_plan(parse_config(config(rules)))
    stream = ScriptedStream(plan, known=sent, max_shards=shards[0])
    made: list[Counter[tuple[str | None, ...]]] = [Counter() for _ in rules]
    start = 0
    for number, cut in enumerate([*cuts, len(sent)]):
        end = max(cut, start)
        if number and len(shards) > 1:
            former = stream
            count = shards[number % len(shards)]
            stream = ScriptedStream(plan, known=sent, max_shards=count)
            rescale_buffers(plan, former.stores, stream.stores)
        outcome = stream.run_micro_batch(
            (number + 1) * SECOND, sent[start:end], ended=number == len(cuts)
        )
        start = end
        for place in range(len(rules)):
            for batch in outcome.by_buffer[f"join{place}"]:
                made[place].update(tuple(message.doc["names"]) for message in batch)
    return made, int(stream.snapshot.dropped.get("late", 0))


def run_oracle(
    rules: list[JoinRules], events: list[Sent], cuts: list[int]
) -> tuple[list[Counter[tuple[str | None, ...]]], int]:
    """Do the same by brute force."""
    oracle = JoinChainOracle(rules, INPUTS)
    made: list[Counter[tuple[str | None, ...]]] = [Counter() for _ in rules]
    start = 0
    for number, cut in enumerate([*cuts, len(events)]):
        end = max(cut, start)
        results = oracle.step(events[start:end], ended=number == len(cuts))
        start = end
        for counted, given_events in zip(made, results, strict=True):
            counted.update(one.names for one in given_events)
    return made, sum(len(join.late) for join in oracle.joins)


@st.composite
def rules_of_chains(draw: st.DrawFn, waits: bool = False) -> list[JoinRules]:
    lateness = st.just(100) if waits else st.sampled_from([0, 3, 8])
    return [
        JoinRules(
            draw(st.sampled_from([0, 2, 6])),
            draw(st.sampled_from([0, 3, 7])),
            draw(st.sampled_from(["inner", "left", "outer"])),
            draw(lateness),
            waits,
        )
        for _ in range(draw(st.integers(2, 3)))
    ]


@st.composite
def events_of(draw: st.DrawFn, inputs: int) -> list[Sent]:
    clock, events = 20, []
    for number in range(draw(st.integers(1, 40))):
        clock += draw(st.sampled_from([0, 0, 1, 2, 9]))
        source = draw(st.sampled_from(INPUTS[:inputs]))
        event = Event(
            clock - draw(st.sampled_from([0, 0, 1, 4, 12])),
            draw(st.sampled_from("xy")),
            (f"{source}{number}",),
        )
        events.append((source, event))
    return events


CUTS = st.lists(st.integers(0, 40), max_size=8).map(sorted)
SHARDS = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@given(data=st.data(), rules=rules_of_chains(), cuts=CUTS, shards=SHARDS)
@settings(max_examples=examples(30, 300), deadline=None)
def test_each_join_gives_what_its_clock_allows(
    data: st.DataObject, rules: list[JoinRules], cuts: list[int], shards: list[int]
) -> None:
    events = data.draw(events_of(len(rules) + 1))
    expected, expected_late = run_oracle(rules, events, cuts)
    made, late = run_stream(rules, events, cuts, shards)
    assert made == expected
    assert late == expected_late


def join_all(rules: list[JoinRules], events: list[Sent]) -> list[Counter[tuple[str | None, ...]]]:
    """Join whole inputs as SQL does, with no clock at all."""
    lefts = [event for source, event in events if source == "a"]
    made = []
    for number, one in enumerate(rules):
        rights = [event for source, event in events if source == INPUTS[number + 1]]
        pairs = [
            (left, right)
            for left, right in product(lefts, rights)
            if left.key == right.key and -one.before <= right.time - left.time <= one.after
        ]
        alone = [left for left in lefts if not any(left is pair[0] for pair in pairs)]
        others = [right for right in rights if not any(right is pair[1] for pair in pairs)]
        lefts = [
            Event(max(left.time, right.time), left.key, left.names + right.names)
            for left, right in pairs
        ]
        if one.type != "inner":
            lefts += [left._replace(names=(*left.names, None)) for left in alone]
        if one.type == "outer":
            missing = (None,) * (number + 1)
            lefts += [right._replace(names=missing + right.names) for right in others]
        made.append(Counter(left.names for left in lefts))
    return made


@given(data=st.data(), rules=rules_of_chains(waits=True), cuts=CUTS, shards=SHARDS)
@settings(max_examples=examples(30, 300), deadline=None)
def test_joins_that_wait_for_all_inputs_give_what_sql_gives(
    data: st.DataObject, rules: list[JoinRules], cuts: list[int], shards: list[int]
) -> None:
    events = data.draw(events_of(len(rules) + 1))
    made, late = run_stream(rules, events, cuts, shards)
    assert late == 0
    assert made == join_all(rules, events)
