"""Steps that follow each other: every match that there is, and none besides."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.message import Message


def steps(*parts: str) -> list[dict[str, Any]]:
    """Return steps from `A`, `B+` (repeat) and `C!x` (no x before it)."""
    made = []
    for part in parts:
        name, _, excluded = part.partition("!")
        step: dict[str, Any] = {"name": name[0], "check": f'this.e.contains("{name[0]}")'}
        if excluded:
            step["not"] = f'this.e.contains("{excluded}")'
        made.append(step | ({"repeat": True} if name.endswith("+") else {}))
    return made


def run(events: list[Any], logged: list[str] | None = None, **fields: Any) -> list[Any]:
    """Return what comes of events: texts of letters, at the times of their places."""
    fields = {"timestamp_mapping": "root = this.t", **fields}
    text = json.dumps({"pipeline": {"processors": [{"match_pattern": fields}]}})
    [component] = parse_config(text, env={}).processors
    processor = build_context().build(component)
    batch = [
        Message.from_value(one if isinstance(one, dict) else {"e": one, "t": place})
        for place, one in enumerate(events)
    ]
    log = logged if logged is not None else []
    ex = Execution(lambda: 0, lambda level, line, fields: log.append(line))
    return [message for made in processor.process(batch, ex) for message in made]


def found(events: list[Any], **fields: Any) -> list[str]:
    """Return the letters and places of each match: `A0 B2`."""
    return [shown(message.doc) for message in run(events, **fields)]


def shown(doc: dict[str, Any]) -> str:
    parts = []
    for name, value in doc["steps"].items():
        rows = value if isinstance(value, list) else [value]
        parts += [f"{name}{row['t']}" for row in rows]
    return " ".join(parts)


@pytest.mark.parametrize(
    ("events", "fields", "expected"),
    [
        ("AxBxC", {}, ["A0 B2 C4"]),
        ("ACB", {}, []),
        ("AABC", {}, ["A0 B2 C3"]),
        ("AABC", {"after_match": "skip_to_next"}, ["A0 B2 C3", "A1 B2 C3"]),
        ("ABCABC", {}, ["A0 B1 C2", "A3 B4 C5"]),
        ("AxBC", {"contiguous": True}, []),
        ("AABC", {"contiguous": True}, ["A1 B2 C3"]),
        ("ABxxC", {"within": "3s"}, []),
        ("AABxC", {"within": "3s"}, ["A1 B2 C4"]),
        ("ABAB", {"emit": "attempts"}, ["A0 B1", "A2 B3"]),
        ("AABC", {"emit": "furthest"}, ["A0 B2 C3"]),
        ("xAxB", {"emit": "furthest"}, ["A1 B3"]),
        ("xx", {"emit": "furthest"}, []),
        # The first B is followed by x; the second is not.
        ("ABxBC", {"steps": steps("A", "B", "C!x")}, ["A0 B3 C4"]),
        ("ABxC", {"steps": steps("A", "B", "C!x")}, []),
        ("ABBxBC", {"steps": steps("A", "B+", "C")}, ["A0 B1 B2 B4 C5"]),
        ("ABCxC", {"steps": steps("A", "B", "C+")}, ["A0 B1 C2 C4"]),
    ],
)
def test_a_pattern_finds(events: str, fields: dict[str, Any], expected: list[str]) -> None:
    assert found(list(events), **{"steps": steps("A", "B", "C"), **fields}) == expected


def test_messages_are_sorted_by_their_times_and_grouped_by_their_keys() -> None:
    events = [
        {"e": "C", "t": 30, "u": 1},
        {"e": "B", "t": 25, "u": 2},
        {"e": "A", "t": 10, "u": 1},
        {"e": "A", "t": 20, "u": 2},
        {"e": "B", "t": 15, "u": 1.0},
    ]
    fields = {"steps": steps("A", "B", "C"), "key_mapping": "root = this.u", "emit": "attempts"}
    docs = [message.doc for message in run(events, **fields)]
    assert docs == [
        {
            "complete": True,
            "reached": 3,
            "key": 1,
            "start": "1970-01-01T00:00:10Z",
            "end": "1970-01-01T00:00:30Z",
            "steps": {"A": events[2], "B": events[4], "C": events[0]},
            "counts": {"A": 1, "B": 1, "C": 1},
        },
        {
            "complete": False,
            "reached": 2,
            "key": 2,
            "start": "1970-01-01T00:00:20Z",
            "end": "1970-01-01T00:00:25Z",
            "steps": {"A": events[3], "B": events[1]},
            "counts": {"A": 1, "B": 1},
        },
    ]


def test_a_check_that_fails_is_not_true_and_a_message_without_a_time_is_marked() -> None:
    logged: list[str] = []
    events = [{"e": "A", "t": 1}, {"e": 5, "t": 2}, {"e": "B", "t": "x"}, {"e": "B", "t": 3}]
    first, failed = run(events, logged, steps=steps("A", "B"))
    assert shown(first.doc) == "A1 B3"
    assert failed.doc == events[2] and "x" in str(failed.error)
    assert any(line.startswith("A step's check failed: ") for line in logged)


def matches(events: list[str], pattern: list[dict[str, Any]], within: int | None) -> dict[int, int]:
    """Try all; return the end of the match that ends first, by the place that it begins at."""
    ends: dict[int, int] = {}
    for places in combinations(range(len(events)), len(pattern)):
        is_match = all(
            step["name"] in events[at] for step, at in zip(pattern, places, strict=True)
        ) and (within is None or places[-1] - places[0] <= within)
        for step, before, at in zip(pattern[1:], places, places[1:], strict=False):
            excluded = step.get("not", "")[17:18]
            between = events[before + 1 : at]
            # What is the step itself does not stand between.
            is_match = is_match and not any(
                excluded and excluded in one and step["name"] not in one for one in between
            )
        if is_match:
            ends[places[0]] = min(ends.get(places[0], places[-1]), places[-1])
    return ends


@given(
    events=st.lists(st.sampled_from(["A", "B", "C", "x", "AB", "BC", "Bx"]), max_size=9),
    within=st.sampled_from([None, 3, 6]),
    pattern=st.sampled_from(
        [("A", "B", "C"), ("A", "B!x", "C"), ("A", "B", "C!x"), ("A", "A", "B!C")]
    ),
)
def test_every_match_that_there_is_is_found(
    events: list[str], within: int | None, pattern: tuple[str, ...]
) -> None:
    named = steps(*pattern)
    for number, step in enumerate(named):  # a step may be asked for twice
        step["name"] += str(number)
    fields: dict[str, Any] = {"steps": named, "after_match": "skip_to_next"}
    if within is not None:
        fields["within"] = f"{within}s"
    ends = {}
    for message in run(list(events), **fields):
        rows = list(message.doc["steps"].values())
        ends[rows[0]["t"]] = rows[-1]["t"]
    plain = [{**step, "name": step["name"][0]} for step in named]
    assert ends == matches(events, plain, within)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"steps": steps("A")}, "has 1; expected two steps at least"),
        ({"steps": steps("A", "A")}, "several steps with the name 'A'"),
        ({"steps": steps("A!x", "B")}, "nothing is before it"),
        (
            {"steps": steps("A", "B"), "within": "1h", "timestamp_mapping": ""},
            "is needed for within",
        ),
        ({"steps": steps("A", "B"), "within": "0s"}, "is not longer than 0s"),
    ],
)
def test_fields_are_checked(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        run([], **fields)
    assert expected in str(error.value)
