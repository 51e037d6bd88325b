"""Windows that were begun with one setting and end with another, as `streamer diff` promises.

Every change that is judged to keep open windows is made here to windows that are open: no message
is lost or comes out twice.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streamer.config import parse_config
from streamer.core.durations import SECOND
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
