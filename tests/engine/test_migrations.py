"""Windows that were begun with one setting and end with another, as `streamer diff` promises.

Every change that is judged to keep open windows is made here to windows that are open: no message
is lost or comes out twice.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan
from streamer.plan.change_impact import Effect, judge
from streamer.plan.change_impact.buffer_rulings import BY_VALUE, RULINGS
from tests.examples import examples

from .folded import T
from .stream import Run, write_lines

CONFIG = """
input: {file: {paths: [events.jsonl]}}
buffer:
  %s: {timestamp_mapping: root = this.ts, end_of_input: %s, %s}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {
            "start": metadata("window_start_timestamp").or(null),
            "key": metadata("window_key").or(null),
            "ids": json("id").from_all()%s,
          }
        } else { deleted() }
output_resources: [{label: late, drop: {}}, {label: other, drop: {}}]
spark: {shards: 2, master: "local[2]"}
"""
KEY = "key_mapping: root = this.key, "
# What the buffer is, what it has in common, and what it has before and after.
MIGRATIONS = [
    ("tumbling_window", "size: 5s", "allowed_lateness: 0s", "allowed_lateness: 4s"),
    ("tumbling_window", "size: 5s", "allowed_lateness: 4s", "allowed_lateness: 0s"),
    ("tumbling_window", KEY + "size: 5s", "allowed_lateness: 0s", "allowed_lateness: 4s"),
    ("tumbling_window", KEY + "size: 5s", "max_ahead: 1h", "max_ahead: 2h"),
    (
        "tumbling_window",
        KEY + "size: 5s, clock_scope: key",
        "key_retention: 7d",
        "key_retention: 1d",
    ),
    ("tumbling_window", "size: 5s", "retention: 1d", "retention: 7d"),
    ("tumbling_window", KEY + "size: 5s", "clock_scope: stream", "clock_scope: partition"),
    (
        "tumbling_window",
        KEY + "size: 5s, clock_scope: partition",
        "source_idle_timeout: 1m",
        "source_idle_timeout: 2m",
    ),
    ("tumbling_window", KEY + "size: 5s", "state_ttl: 1d", "state_ttl: 2d"),
    ("tumbling_window", "size: 5s", "filter: this.id >= 0", "filter: this.id > -1"),
    ("tumbling_window", "size: 5s", "having: batch_size() > 0", "having: this.id >= 0"),
    ("tumbling_window", "size: 5s", "order: arrival", "order: event_time"),
    ("tumbling_window", "size: 5s", "order: event_time", "order: arrival"),
    ("session_window", KEY + "gap: 3s", "order: arrival", "order: event_time"),
    ("session_window", KEY + "gap: 3s", "emit_also: []", "emit_also: [on_time]"),
    ("tumbling_window", "size: 5s", "late_output: late", "late_output: other"),
    (
        "tumbling_window",
        "size: 5s, idle_timeout: 4s",
        "allowed_lateness: 0s",
        "allowed_lateness: 4s",
    ),
    (
        "tumbling_window",
        "size: 5s, idle_timeout: 4s",
        "allowed_lateness: 4s",
        "allowed_lateness: 0s",
    ),
    ("tumbling_window", KEY + "size: 5s", "idle_timeout: 4s", "idle_timeout: 9s"),
    ("tumbling_window", KEY + "size: 5s", "idle_timeout: 9s", "idle_timeout: 4s"),
    ("tumbling_window", "size: 5s, idle_timeout: 9s", "emit: changes", "emit: final"),
    ("tumbling_window", "size: 5s, idle_timeout: 9s", "emit: each", "emit: final"),
    ("tumbling_window", "size: 5s", "emit: changes", "emit: each"),
    ("tumbling_window", "size: 5s", "emit: each", "emit: changes"),
    ("session_window", KEY + "gap: 3s", "allowed_lateness: 0s", "allowed_lateness: 4s"),
    ("session_window", KEY + "gap: 3s", "allowed_lateness: 4s", "allowed_lateness: 0s"),
    ("session_window", KEY + "gap: 3s", "idle_timeout: ''", "idle_timeout: 4s"),
    ("session_window", KEY + "gap: 3s", "idle_timeout: 4s", "idle_timeout: ''"),
    ("session_window", KEY + "gap: 3s", "emit: changes", "emit: final"),
    ("session_window", KEY + "gap: 3s", "emit: each", "emit: changes"),
    (
        "tumbling_window",
        KEY + "size: 5s",
        "empty_windows: {emit: keys_seen}",
        "empty_windows: {emit: keys_seen, fill: previous, keys: [never]}",
    ),
    ("system_window", "size: 5s", "allowed_lateness: 0s", "allowed_lateness: 4s"),
    ("system_window", "size: 5s", "allowed_lateness: 4s", "allowed_lateness: 0s"),
    ("system_window", "size: 5s", "expire_after: 10s", "expire_after: 20s"),
    ("system_window", "size: 5s", "on_expired: drop", "on_expired: keep"),
]
SLIDING = (
    "sliding_window: "
    "{timestamp_mapping: root = this.ts, size: 2s, mode: event, end_of_input: keep, %s}"
)
# Windows whose messages are in several, or in none: the buffer, what it has before and after, and
# the ids of the windows that come of the messages 0 to 5, one each second. The change is before 3.
CONDITIONS = [
    (
        "state_window: {%s, emit_when: this.id == 4, end_of_input: keep}",
        *("begin_when: this.id == 1", "begin_when: this.id == 5", [[1, 2, 3, 4]]),
    ),
    (
        "state_window: {begin_when: this.id == 1, %s, end_of_input: keep}",
        *("emit_when: this.id == 9", "emit_when: this.id == 3", [[1, 2, 3]]),
    ),
    (
        SLIDING,
        *("emit_when: this.id == 1", "emit_when: this.id == 4", [[0, 1], [2, 3, 4]]),
    ),
    (
        SLIDING,
        *("emit_every: 1m", "emit_every: 4s", [[2, 3, 4]]),
    ),
    (
        SLIDING,
        *("closed: both", "closed: right", [[0], [0, 1], [0, 1, 2], [2, 3], [3, 4], [4, 5]]),
    ),
]
TABLE_JOIN = """
input:
  broker:
    inputs: [{label: orders, stdin: {}}, {label: names, file: {paths: [x]}}]
buffer:
  table_join:
    stream: orders
    table: names
    timestamp_mapping: root = this.ts
    key_mapping: root = 1
    allowed_lateness: 1m
    delete_when: this.name == null
    %s
pipeline: {processors: [{mapping: 'root = [this.left.id, this.right.name]'}]}
"""
WAITING = "history: 1m\n    type: left\n    "
# What a join has before and after, and the names that the messages 0 to 5 get. Three of them
# wait when the setting changes.
JOINS = [
    ("history: 1m\n    type: inner", "history: 1m\n    type: left", [*"aabb", None, None]),
    ("type: left\n    history: 1m", "type: left\n    history: 2m", [*"aabb", None, None]),
    (WAITING + "table_ttl: 1h", WAITING + "table_ttl: 2h", [*"aabb", None, None]),
]


def text(buffer: str, end: str, common: str, setting: str, folds: bool) -> str:
    if buffer == "system_window":
        end = {"keep": "keep", "flush": "flush"}[end]
    every = ".unique()" if folds else ""
    return CONFIG % (buffer, end, f"{common}, {setting}", every)


@pytest.mark.parametrize(("buffer", "common", "old", "new"), MIGRATIONS)
def test_the_change_is_judged_to_keep_what_is_open(
    buffer: str, common: str, old: str, new: str
) -> None:
    left, right = (parse_config(text(buffer, "keep", common, one, False)) for one in (old, new))
    assert judge(left, right).effect == Effect.MIGRATE


def test_every_change_that_keeps_open_windows_is_made_to_some() -> None:
    kept = {name for name, found in RULINGS.items() if found.effect == Effect.MIGRATE} | BY_VALUE
    # How the input ends changes in each of them, at the end.
    made = {old.partition(":")[0] for _, _, old, _ in MIGRATIONS} | {"end_of_input"}
    made |= {old.partition(":")[0] for _, old, _, _ in CONDITIONS}
    made |= {old.split()[-2].removesuffix(":") for old, _, _ in JOINS}
    assert made == kept


EVENTS = st.lists(st.tuples(st.integers(0, 25), st.sampled_from("ab")), min_size=2, max_size=14)


@pytest.mark.parametrize(("buffer", "common", "old", "new"), MIGRATIONS)
@settings(
    deadline=None,
    max_examples=examples(2, 40),
    phases=[phase for phase in Phase if phase != Phase.explain],
)
@given(events=EVENTS, cut=st.integers(0, 14), folds=st.tuples(st.booleans(), st.booleans()))
def test_no_message_is_lost_or_comes_out_twice(
    tmp_path_factory: pytest.TempPathFactory,
    buffer: str,
    common: str,
    old: str,
    new: str,
    events: list[tuple[int, str]],
    cut: int,
    folds: tuple[bool, bool],
) -> None:
    source = tmp_path_factory.mktemp("migration") / "events.jsonl"

    def run(end: str, setting: str, fold: bool, state=None, start="a") -> Run:
        body = text(buffer, end, common, setting, fold).replace("events.jsonl", str(source))
        return Run(body, state, start)

    def write(first: int, last: int | None) -> None:
        found = list(enumerate(events))[first:last]
        lines = [{"id": number, "key": key, "ts": T + at} for number, (at, key) in found]
        write_lines(source, lines)

    write(0, cut)
    before = run("keep", old, folds[0])
    before.step((T + 1) * SECOND)
    printed = before.printed()
    write(cut, None)
    after = run("keep", new, folds[1], before.state, "b")
    after.step((T + 2) * SECOND)
    after.step((T + 3) * SECOND)
    printed += after.printed()
    last = run("flush", new, folds[1], after.state, "c")
    last.step((T + 4) * SECOND)
    last.step((T + 5) * SECOND)
    printed += last.printed()
    found = Counter(one for line in printed for one in line["ids"])
    snapshot = last.snapshot
    assert snapshot.held == 0
    dropped = sum(snapshot.dropped.values())
    assert len(found) + dropped == len(events), (printed, snapshot)
    if "emit" not in old:
        assert max(found.values(), default=1) == 1, printed
    # A window's newest content has all that it ever had.
    newest: dict[str, list[int]] = {}
    for line in printed:
        place = json.dumps([line["start"], line["key"]])
        if "emit" in old and buffer != "session_window" and "idle" not in common:
            assert set(newest.get(place, ())) <= set(line["ids"]), printed
        newest[place] = line["ids"]


def test_a_change_that_is_refused_would_lose_windows(tmp_path) -> None:
    source = tmp_path / "events.jsonl"
    write_lines(source, [{"id": 0, "key": "a", "ts": T}])
    state, printed = None, []
    for number, (end, setting) in enumerate(
        (("keep", "emit: final"), ("keep", "emit: changes"), ("flush", "emit: changes"))
    ):
        body = text("session_window", end, KEY + "gap: 3s", setting, False)
        run = Run(body.replace("events.jsonl", str(source)), state, str(number))
        run.step((T + number) * SECOND)
        printed += run.printed()
        state = run.state
    assert printed == [] and run.snapshot.held == 0
    left, right = (
        parse_config(text("session_window", "keep", KEY + "gap: 3s", one, False))
        for one in ("emit: final", "emit: changes")
    )
    assert judge(left, right).effect == Effect.RESET


@pytest.mark.parametrize(("buffer", "old", "new", "expected"), CONDITIONS)
def test_windows_that_messages_choose_go_on_with_other_conditions(
    tmp_path: Path, buffer: str, old: str, new: str, expected: list[list[int]]
) -> None:
    source = tmp_path / "events.jsonl"
    ids = 'root = if batch_index() == 0 { json("id").from_all() } else { deleted() }'
    bodies = [
        f"input: {{file: {{paths: ['{source}']}}}}\nbuffer:\n  {buffer % one}\n"
        f"pipeline: {{processors: [{{mapping: '{ids}'}}]}}\n"
        'spark: {shards: 2, master: "local[2]"}\n'
        for one in (old, new)
    ]
    assert judge(*map(parse_config, bodies)).effect == Effect.MIGRATE
    lines = [{"id": number, "ts": T + number} for number in range(6)]
    assert run_parts(source, bodies, [lines[:3], lines[3:]]) == expected


@pytest.mark.parametrize(("old", "new", "expected"), JOINS)
def test_messages_that_wait_for_a_table_go_on_with_other_settings(
    old: str, new: str, expected: list[str | None]
) -> None:
    bodies = [TABLE_JOIN % one for one in (old, new)]
    first, second = (parse_config(body) for body in bodies)
    assert judge(first, second).effect == Effect.MIGRATE
    rows = [{"ts": 0, "name": "a"}, {"ts": 2, "name": "b"}, {"ts": 4, "name": None}]
    sent = [ScriptedMessage(Message.from_value({"id": n, "ts": n}), 0, "orders") for n in range(6)]
    known = [ScriptedMessage(Message.from_value(row), 0, "names") for row in rows]
    before, after = (ScriptedStream(make_plan(one)) for one in (first, second))
    batches = before.run_micro_batch(SECOND, known + sent[:3]).batches
    after.stores = before.stores
    batches += after.run_micro_batch(2 * SECOND, sent[3:]).batches
    batches += after.run_micro_batch(3 * SECOND, ended=True).batches
    joined = sorted(tuple(message.doc) for batch in batches for message in batch)
    assert joined == list(enumerate(expected))


def run_parts(source: Path, bodies: list[str], parts: list[list[dict[str, int]]]) -> list[Any]:
    """Run a stream with a part of the lines for each of its configs; return what is printed."""
    state, printed = None, []
    for number, (body, lines) in enumerate(zip(bodies, parts, strict=True)):
        write_lines(source, lines)
        run = Run(body, state, f"start{number}")
        run.step((T + 2 * number) * SECOND)
        run.step((T + 2 * number + 1) * SECOND)
        printed += run.printed()
        state = run.state
    return printed
