"""Keys whose clocks are their own, and that begin afresh while their windows are open."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.window.kinds_stream import EventStream
from tests.window.oracle import streams
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.hopping import Hopping, HoppingOracle
from tests.window.oracle.sliding_event import EventOracle, EventSliding
from tests.window.test_event_laws import KINDS, assert_batches, assert_counters, count

RETENTION = 12
OWN: dict[str, Any] = {"keyed": True, "clock_scope": "key", "key_retention": RETENTION}


@st.composite
def cases(draw: st.DrawFn, kind: str) -> tuple[Any, list[MicroBatch]]:
    strategy, _, more = KINDS[kind]
    rules = replace(draw(strategy), clock="stream", max_ahead=None, **OWN)
    return rules, draw(streams.streams(rules, keys=("a", "b"), **more))


@pytest.mark.parametrize("kind", ["tumbling", "hopping", "session", "forward", "event", "kafka"])
@settings(max_examples=examples(8, 150), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 1000))
def test_keys_begin_afresh_as_the_rules_say(kind: str, data: st.DataObject, seed: int) -> None:
    rules, batches = data.draw(cases(kind))
    given_as_the_rules_say(KINDS[kind][1](rules), rules, kind, batches, seed)


def given_as_the_rules_say(
    oracle: Any, rules: Any, kind: str, batches: list[MicroBatch], seed: int = 0
) -> list[list[tuple[str, ...]]]:
    """Run a stream beside its oracle; return the names in each batch of each micro-batch."""
    mode = "event" if kind == "event" else "forward"
    stream = EventStream(rules, mode, 1, random.Random(seed))
    sums: Counter[str] = Counter()
    names = []
    for batch in batches:
        expected, found = oracle.step(batch), stream.step(batch)
        assert sorted(found.dropped.items()) == sorted(expected.dropped)
        assert_batches(expected, found, {})
        count(sums, batch, expected)
        assert_counters(found, sums)
        names.append([one[1] for one in found.batches.get(0, [])])
    return names


def at(name: str, time: int) -> Event:
    return Event(name, time, "a")


def test_an_event_does_not_look_back_at_what_was_before_its_key_began_afresh() -> None:
    rules = EventSliding(size=1, **OWN)
    batches = [
        MicroBatch(0, (at("m1", 0),)),
        MicroBatch(RETENTION, (at("m2", 0),)),
        MicroBatch(RETENTION + 1, (at("m3", 1),)),
    ]
    names = given_as_the_rules_say(EventOracle(rules), rules, "event", batches)
    assert names == [[("m1",)], [("m2",)], [("m2", "m3")]]


def test_a_window_that_opens_again_holds_nothing_that_others_hold_still() -> None:
    rules = Hopping(size=10, every=5, **OWN)
    batches = [
        MicroBatch(0, (at("m1", 7), at("m2", 12))),
        MicroBatch(RETENTION, (at("m3", 3),)),
        MicroBatch(RETENTION + 1, ended=True),
    ]
    names = given_as_the_rules_say(HoppingOracle(rules), rules, "hopping", batches)
    assert names == [[("m1",)], [], [("m3",), ("m3",), ("m1", "m2"), ("m2",)]]


def test_a_window_that_opens_again_comes_out_at_once_without_what_others_hold_still() -> None:
    rules = Hopping(size=2, every=1, emit="each", **OWN)
    batches = [
        MicroBatch(0, (at("m1", 0), at("m2", 1))),
        MicroBatch(RETENTION, (at("m3", 0),)),
    ]
    names = given_as_the_rules_say(HoppingOracle(rules), rules, "hopping", batches)
    assert ("m3",) in names[1] and ("m1", "m3") not in names[1]
