"""Windows behind windows: exact, however the stream is cut, and over however many shards."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config.load import parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.core.timestamps import format_rfc3339
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan
from tests.examples import examples

LATENESS = 5
FOLDED = '{"key": this.key, "sum": json("value").from_all().sum(), "of": @window_start_timestamp}'
WHOLE = FOLDED.replace("sum()", "fold(0, i -> i.tally + i.value)")


Event = tuple[int, str, int]
"""Of an event or a result: its time, ns, its key and its value."""


def on_a_grid(rows: list[Event], size: int, every: int) -> list[Event]:
    """Give what the windows [start, end) of one key make of events or results."""
    windows: dict[int, int] = defaultdict(int)
    for time, _, value in rows:
        end = time - time % every + size
        while end > time:
            windows[end] += value
            end -= every
    return [(end - 1, rows[0][1], total) for end, total in windows.items()]


def in_sessions(rows: list[Event], gap: int) -> list[Event]:
    """Give what the sessions of one key make of events or results."""
    found: list[Event] = []
    for time, key, value in sorted(rows):
        total = found.pop()[2] if found and time - found[-1][0] <= gap else 0
        found.append((time, key, total + value))
    return found


def group(kind: str, rows: list[Event]) -> list[Event]:
    """Give what windows of a kind make of events or results, key by key: the oracle."""
    made = []
    for key in {key for _, key, _ in rows}:
        mine = [row for row in rows if row[1] == key]
        if kind == "session":
            made += in_sessions(mine, 12 * SECOND)
        else:
            size, every = {"tumbling": (10, 10), "hopping": (20, 10), "minute": (60, 60)}[kind]
            made += on_a_grid(mine, size * SECOND, every * SECOND)
    return made


FIELDS = {
    "tumbling": "tumbling_window: {{size: 10s, {}}}",
    "hopping": "hopping_window: {{size: 20s, every: 10s, {}}}",
    "session": "session_window: {{gap: 12s, {}}}",
    "minute": "tumbling_window: {{size: 60s, {}}}",
    "minute by key": "tumbling_window: {{size: 60s, idle_timeout: 10d, {}}}",
}


def config(kinds: tuple[str, ...], mapping: str) -> str:
    """Return the text of a config with one buffer behind the other."""
    lines = ["buffers:"]
    for number, kind in enumerate(kinds):
        value = "value" if number == 0 else "sum"
        more = "key_mapping: root = this.key"
        if number == 0:
            more += f", timestamp_mapping: root = this.time, allowed_lateness: {LATENESS}s"
        lines += [
            f"  - label: level{number}",
            f"    {FIELDS[kind].format(more)}",
            *([f"    from: level{number - 1}"] if number else []),
            "    output: {drop: {}}",
            "    pipeline:",
            "      processors:",
            "        - mapping: |",
            f"            root = if batch_index() == 0 {{ {mapping.replace('value', value, 1)} }} "
            "else { deleted() }",
        ]
    return "\n".join(lines)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Give events that are out of order by no more than is allowed."""
    clock, events = 0, []
    for _ in range(draw(st.integers(1, 40))):
        clock += draw(st.sampled_from([0, 1, 3, 9, 25]))
        events.append(
            (
                max(clock - draw(st.integers(0, LATENESS)), 0) * SECOND,
                draw(st.sampled_from("abc")),
                draw(st.integers(1, 9)),
            )
        )
    return events


def run(
    text: str, events: list[Event], cuts: list[int], shards: int
) -> tuple[dict[str, list[tuple[str, int, str]]], ScriptedStream]:
    """Run a stream to its end, cut after so many events; give what each buffer has made."""
    stream = ScriptedStream(make_plan(parse_config(text)), max_shards=shards)
    made: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
    start, now = 0, 0
    for number, cut in enumerate([*cuts, len(events)]):
        sent = [
            ScriptedMessage(
                Message.from_value({"time": time // SECOND, "key": key, "value": value})
            )
            for time, key, value in events[start : max(cut, start)]
        ]
        start, now = max(cut, start), now + SECOND
        outcome = stream.run_micro_batch(now, sent, ended=number == len(cuts))
        for label, batches in outcome.by_buffer.items():
            for batch in batches:
                (message,) = batch
                end = str(message.meta["window_end_timestamp"])
                made[label].append((message.doc["key"], message.doc["sum"], end))
    return made, stream


@pytest.mark.parametrize("mapping", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize(
    "kinds",
    [
        ("tumbling", "minute"),
        ("hopping", "minute"),
        ("session", "minute by key"),
        ("tumbling", "session"),
        ("tumbling", "hopping", "minute"),
    ],
    ids="-".join,
)
@given(
    events=streams(),
    cuts=st.lists(st.integers(0, 40), max_size=6).map(sorted),
    shards=st.integers(1, 3),
)
@settings(max_examples=12, deadline=None)
def test_windows_behind_windows_are_those_of_one_after_the_other(
    kinds: tuple[str, ...], mapping: str, events: list[Event], cuts: list[int], shards: int
) -> None:
    """The oracle groups all events, then all results: cuts, shards and the order mean nothing."""
    made, stream = run(config(kinds, mapping), events, cuts, shards)
    rows = events
    for number, kind in enumerate(kinds):
        rows = group(kind.removesuffix(" by key"), rows)
        after = 0 if kind == "session" else 1
        expected = sorted((key, total, format_rfc3339(time + after)) for time, key, total in rows)
        assert sorted(made[f"level{number}"]) == expected, f"level {number}"
    assert not stream.snapshot.dropped, "nothing is late behind another window"
    assert stream.snapshot.held == 0


LISTED = """
buffers:
  - label: quiet
    tumbling_window: { timestamp_mapping: root = this.time, key_mapping: root = this.key, size: 1d }
  - label: grid
    tumbling_window:
      timestamp_mapping: root = this.time
      key_mapping: root = this.key
      size: 1m
      empty_windows: { emit: keys, keys: [a, b, c, d, e] }
    pipeline: { processors: [ { mapping: root = @window_key } ] }
  - label: sessions
    session_window:
      timestamp_mapping: root = this.time
      key_mapping: root = this.key
      gap: 1m
      expected_keys: [a, b, c, d, e]
    pipeline: { processors: [ { mapping: root = @window_key } ] }
"""


def test_keys_are_listed_of_all_buffers() -> None:
    stream = ScriptedStream(make_plan(parse_config(LISTED)), max_shards=2)
    sent = [ScriptedMessage(Message.from_value({"time": time, "key": "a"})) for time in (0, 300)]
    made = stream.run_micro_batch(SECOND, sent).by_buffer
    silent = {
        label: {one.raw for [one] in made[label] if one.meta["window_emit"] == "empty"}
        for label in ("grid", "sessions")
    }
    assert silent == {"grid": {b"a", b"b", b"c", b"d", b"e"}, "sessions": {b"b", b"c", b"d", b"e"}}


ONCE = """
input: { stdin: {} }
buffers:
  - label: once
    keyed_state:
      key_mapping: root = this.id
      timestamp_mapping: root = this.t
      order: event_time
      allowed_lateness: 20s
    pipeline: { processors: [ { deduplicate: {} } ] }
  - label: minutes
    from: once
    tumbling_window: { timestamp_mapping: root = this.t, size: 10s }
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {
              { "n": batch_size(), "start": @window_start_unix_ms }
            } else { deleted() }
"""


@settings(max_examples=examples(20, 200), deadline=None)
@given(
    events=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 90)), max_size=40),
    cuts=st.lists(st.integers(1, 9), min_size=1),
)
def test_windows_count_what_is_left_once_duplicates_are_dropped(events, cuts) -> None:
    """Messages that `keyed_state` has sorted are never late behind it."""
    stream = ScriptedStream(make_plan(parse_config(ONCE)))
    found = []
    first, turn = 0, 0
    while first < len(events) or not turn:
        some = events[first : first + cuts[turn % len(cuts)]]
        first, turn = first + max(len(some), 1), turn + 1
        sent = [ScriptedMessage(Message.from_value({"id": i, "t": t})) for i, t in some]
        ended = first >= len(events)
        found += stream.run_micro_batch(turn * SECOND, sent, ended).batches
    clock, taken = 0, []
    for i, t in events:
        if t >= clock - 20:
            taken.append((t, i))
        clock = max(clock, t)
    counts: dict[int, int] = defaultdict(int)
    seen = set()
    for t, i in sorted(taken, key=lambda one: one[0]):
        if i not in seen:
            seen.add(i)
            counts[t // 10 * 10_000] += 1
    assert {one.doc["start"]: one.doc["n"] for [one] in found} == dict(counts)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("      order: event_time\n      allowed_lateness: 20s\n", "", "in order of arrival: how"),
        ("tumbling_window: { timestamp_mapping: root = this.t, ", "tumbling_window: { ", "no time"),
    ],
)
def test_messages_without_windows_need_an_order_and_a_time_of_their_own(old, new, message) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(ONCE.replace(old, new))
