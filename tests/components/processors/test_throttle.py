"""So many messages of a key pass in a period; so does the first of a key, once."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan

CONFIG = """
buffer:
  keyed_state: { key_mapping: root = this.k, timestamp_mapping: root = this.t }
pipeline:
  processors:
    - %s
"""


def passed(processor: str, *events: tuple[str, int], cut: int = 2) -> list[tuple[int, Any]]:
    """Return the places of the messages that pass, with their metadata, restarting in between."""
    stream = ScriptedStream(make_plan(parse_config(CONFIG % processor)))
    sent = [
        ScriptedMessage(Message.from_value({"k": key, "t": t, "i": i}))
        for i, (key, t) in enumerate(events)
    ]
    found = []
    for first in range(0, len(sent), cut):
        outcome = stream.run_micro_batch(first * SECOND, sent[first : first + cut])
        found += [(one.doc["i"], dict(one.meta)) for batch in outcome.batches for one in batch]
        stream.restart()
    return found


EVENTS = [("a", 0), ("b", 5), ("a", 9), ("a", 3), ("a", 10), ("b", 14), ("b", 15), ("a", 40)]


@pytest.mark.parametrize("cut", [1, 2, 3, 8])
def test_one_passes_in_a_period_and_says_how_many_did_not(cut) -> None:
    found = passed("throttle: { period: 10s }", *EVENTS, cut=cut)
    assert found == [
        (0, {"throttle_suppressed": 0}),
        (1, {"throttle_suppressed": 0}),
        (4, {"throttle_suppressed": 2}),
        (6, {"throttle_suppressed": 1}),
        (7, {"throttle_suppressed": 0}),
    ]


def test_as_many_pass_as_the_message_says_and_others_are_marked() -> None:
    found = passed(
        "throttle: { period: 10s, max: '${! if this.k == \"a\" { 2 } else { 1 } }', "
        "overflow: mark }",
        *EVENTS[:6],
    )
    marked = {"throttle_exceeded": True}
    assert found == [
        (0, {"throttle_suppressed": 0}),
        (1, {"throttle_suppressed": 0}),
        (2, {"throttle_suppressed": 0}),
        (3, marked),
        (4, {"throttle_suppressed": 1}),
        (5, marked),
    ]


def test_a_key_within_the_key_has_a_period_of_its_own() -> None:
    found = passed('throttle: { period: 10s, key: "${! this.t % 2 }" }', *EVENTS[:4])
    assert [place for place, _ in found] == [0, 1, 2]


@pytest.mark.parametrize("cut", [1, 3, 8])
@pytest.mark.parametrize(
    ("processor", "places"),
    [
        ("deduplicate: {}", [0, 1]),
        ("deduplicate: { ttl: 10s }", [0, 1, 4, 6, 7]),
        ('deduplicate: { key: "${! this.t % 2 }" }', [0, 1, 2, 5]),
    ],
)
def test_the_first_of_a_key_passes_once(processor, places, cut) -> None:
    assert [place for place, _ in passed(processor, *EVENTS, cut=cut)] == places


def test_a_message_that_cannot_be_decided_about_is_marked() -> None:
    plan = make_plan(parse_config(CONFIG % "throttle: { period: 1s, max: '${! this.m }' }"))
    sent = [ScriptedMessage(Message.from_value({"k": 1, "t": 0, "m": "many"}))]
    [[message]] = ScriptedStream(plan).run_micro_batch(0, sent).batches
    assert message.error == "max is 'many'; expected a number of messages"


@pytest.mark.parametrize(
    ("processor", "problem"),
    [
        ("throttle: { period: 0s }", "longer than 0s"),
        ("throttle: { period: 1s, max: 0 }", "a number of messages of 1 or more"),
        ("deduplicate: { ttl: 0s }", "longer than 0s"),
        ("parallel: { processors: [ { deduplicate: {} } ] }", "messages overtake one another"),
    ],
)
def test_what_cannot_be_is_refused(processor, problem) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_config(CONFIG % processor)


def test_without_a_key_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="behind the buffer none messages have no key"):
        parse_config("pipeline: { processors: [ { throttle: { period: 1s } } ] }")
