"""Windows that are decided key by key give, folded, what they give when they keep every message."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from streamer.core.durations import SECOND
from streamer.plan.window_plan import Aggregation
from streamer.sdk.input.replayable import Limit
from tests.examples import examples

from .folded import T, line, rounded
from .stream import Run, write_lines
from .test_folded_parts import AROUND, ONES, PARTS

CONFIG = """
input:
  file: {paths: [cars.jsonl]}
buffer:
  %s:
    timestamp_mapping: root = this.ts.or(now())
    %s
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {
            "told": metadata().filter(e -> e.key.has_prefix("window")),
            "first": this.catch(null),
            "parts": [ %s ],
          }
        } else { deleted() }
    - mapping: 'root = if errored() { {"failed": error(), "of": content().string()} }'
spark: {shards: %d, master: "local[2]"}
"""
BY_LIGHT = "key_mapping: root = this.light.or(null)"
WINDOWS = {
    "tumbling each": ("tumbling_window", "{size: 5s, emit: each, allowed_lateness: 2s}"),
    "tumbling changes": ("tumbling_window", "{size: 5s, emit: changes}"),
    "tumbling idle": ("tumbling_window", "{size: 10s, idle_timeout: 4s}"),
    "tumbling empty": ("tumbling_window", "{empty_windows: {emit: keys_seen}, size: 2s}"),
    "hopping filled": (
        "hopping_window",
        "{empty_windows: {emit: keys_seen,fill: previous}, size: 4s, every: 2s}",
    ),
    "hopping each": ("hopping_window", "{size: 6s, every: 2s, emit: each}"),
    "hopping changes": ("hopping_window", "{size: 6s, every: 2s, emit: changes}"),
    "hopping by key": ("hopping_window", "{size: 6s, every: 3s, clock_scope: key}"),
    "hopping, system": (
        "hopping_window",
        "{size: 6s, every: 3s, clock: system, emit: changes, idle_timeout: 3s}",
    ),
    "session": ("session_window", "{gap: 2s, allowed_lateness: 6s}"),
    "session changes": ("session_window", "{gap: 2s, emit: changes, allowed_lateness: 4s}"),
    "session each": ("session_window", "{gap: 2s, emit: each, allowed_lateness: 6s}"),
    "session, cut": ("session_window", "{gap: 2s, max_duration: 4s, emit: each}"),
    "session, cut by start": (
        "session_window",
        "{gap: 2s, max_duration: 3s, max_duration_origin: start, allowed_lateness: 2s}",
    ),
    "session, limited": ("session_window", "{gap: 2s, max_count: 3, allowed_lateness: 6s}"),
    "session, limited changes": ("session_window", "{gap: 3s, max_count: 2, emit: changes}"),
    "session, limited each": ("session_window", "{gap: 3s, max_count: 2, emit: each}"),
    "session, gaps": (
        "session_window",
        '{gap_mapping: root = if this.light == "a" { 4 }, gap: 2s, allowed_lateness: 4s}',
    ),
    "session, idle": ("session_window", "{gap: 3s, idle_timeout: 3s, clock_scope: key}"),
}


@st.composite
def lines(draw):
    """Some documents with times near T, and some lines that are none."""
    made = []
    for document in draw(st.lists(ONES, max_size=10)):
        light = draw(st.sampled_from(["a", "a", "b", 1, 1.0]))
        time = T + draw(st.sampled_from([1, 2.5, 3, 4, 5, 7, 9, 10, 13]))
        told = {**document, "light": light, "ts": time}
        made.append(line(told, draw(st.booleans()), not draw(st.integers(0, 9))))
    return made


STEPS = st.lists(
    st.tuples(st.integers(0, 12), lines(), st.sampled_from([1, 3, 100]), st.booleans()),
    min_size=1,
    max_size=4,
)


def config(name: str, keyed: bool, keeps: bool, parts: list[str], shards: int) -> str:
    kind, fields = WINDOWS[name]
    keyed = keyed or "clock_scope: key" in fields
    more = [*fields.strip("{}").split(", "), *([BY_LIGHT] if keyed else [])]
    more += ["end_of_input: keep"] if keeps else []
    return CONFIG % (kind, "\n    ".join(more), ", ".join(parts), shards)


def outcome(directory, text, steps, folds):
    """Run micro-batches, with restarts, and return all that is printed, in order."""
    path = directory / "cars.jsonl"
    path.write_bytes(b"")

    def started(before: Run | None) -> Run:
        if before is None:
            run = Run(text)
        else:
            run = Run(text, before.state, before.start_id + "'")
            run.delivery.statuses = before.delivery.statuses
        assert run.plan.aggregation.text is not None, run.plan.aggregation.obstacle
        if not folds:
            run.plan = replace(run.plan, aggregation=Aggregation(None))
        return run

    run = started(None)
    printed = []
    for second, documents, limit, restarted in steps:
        run = started(run) if restarted else run
        write_lines(path, documents)
        ended = False
        while not ended:
            ended = run.step(
                (T + second) * SECOND, Limit(messages=limit), tries=1 + restarted
            ).ended
            printed.append(run.printed())
            assert sums_up(run)
    run.step((T + 60) * SECOND)
    statuses = run.delivery.statuses.values()
    held = [(status["held"], status["open_windows"]) for status in statuses]
    return [*printed, run.printed()], held, [counters(status) for status in statuses]


def counters(status):
    return {name: value for name, value in status["counters"].items() if name != "released"}


def sums_up(run: Run) -> bool:
    """Tell whether what was taken is held or was given back."""
    for status in run.delivery.statuses.values():
        found = status["counters"]
        if found["taken"] != status["held"] + found["released"]:
            return False
    return True


REACHED = [b'{"ts": %d}' % (T + second) for second in (10, 4, 7, 3, 13, 9, 5, 3, 4)]
"""When 13 has come, the session of 4 and 3 is closed, and the one of 10 reaches over it later."""


@pytest.mark.parametrize("name", WINDOWS)
@settings(
    max_examples=examples(4, 100),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    keyed=st.booleans(),
    keeps=st.booleans(),
    parts=st.lists(st.tuples(PARTS, st.sampled_from(AROUND)), min_size=1, max_size=4),
    steps=STEPS,
    shards=st.integers(1, 3),
)
@example(
    keyed=False,
    keeps=False,
    parts=[('json("ts").from_all().sum()', "{}")],
    steps=[(1, REACHED, 100, False)],
    shards=1,
)
def test_folded_windows_of_keys_give_what_whole_ones_give(
    tmp_path_factory, monkeypatch_module, name, keyed, keeps, parts, steps, shards
):
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    steps = sorted(steps, key=lambda step: step[0])
    # Where two sessions join, a message's place among all is not known.
    places = "session" not in name
    asked = [f"({around.format(part)}).catch(this)" for part, around in parts]
    text = config(name, keyed, keeps, asked, shards)
    folded = outcome(directory, text, steps, folds=True)
    whole = outcome(directory, text, steps, folds=False)
    assert rounded(folded, places) == rounded(whole, places)


COUNTING = """
input:
  file: {paths: [cars.jsonl]}
buffer:
  %s
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {"key": this.light, "%s": json("p").from_all().sum(), "first": this.p}
        } else { deleted() }
spark: {shards: 2, master: "local[2]"}
"""
TUMBLING = """tumbling_window:
    {timestamp_mapping: root = this.ts, key_mapping: root = this.light, size: 10s, emit: each}"""
SESSIONS = """session_window:
    {timestamp_mapping: root = this.ts, key_mapping: root = this.light, gap: 10s}"""


def cars(times, p=1, lights="a"):
    return [{"ts": T + time, "light": light, "p": p} for time in times for light in lights]


@pytest.mark.parametrize("before", [True, False])
def test_windows_of_keys_finish_on_the_mapping_that_they_began_with(tmp_path, monkeypatch, before):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cars.jsonl"
    tumbling = TUMBLING.replace("emit: each", "emit: each, end_of_input: keep")
    write_lines(path, cars([1, 2]))
    first = Run(COUNTING % (tumbling, "old"))
    if not before:
        first.plan = replace(first.plan, aggregation=Aggregation(None))
    first.step((T + 2) * SECOND)
    again = Run(COUNTING % (tumbling, "new"), first.state, "second")
    write_lines(path, cars([3, 11], p=5))
    again.step((T + 4) * SECOND)
    # What was kept whole goes to the mapping that there is.
    name = "old" if before else "new"
    assert again.printed() == [
        {"key": "a", name: 7, "first": 1},
        {"key": "a", "new": 5, "first": 5},
    ]


def test_sessions_that_join_finish_on_the_mapping_of_the_one_that_was_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cars.jsonl"
    more = "gap: 10s, allowed_lateness: 60s, end_of_input: keep"
    sessions = SESSIONS.replace("gap: 10s", more)
    write_lines(path, cars([1]))
    first = Run(COUNTING % (sessions, "old"))
    first.step((T + 2) * SECOND)
    again = Run(COUNTING % (sessions, "new"), first.state, "second")
    write_lines(path, cars([20, 10], p=2) + cars([200, 300], p=3, lights="b"))
    again.step((T + 4) * SECOND)
    again.step((T + 5) * SECOND)
    assert again.printed() == [
        {"key": "a", "old": 5, "first": 1},
        {"key": "b", "new": 3, "first": 3},
    ]


@pytest.mark.parametrize("buffer", [TUMBLING, SESSIONS])
def test_the_state_of_folded_keys_does_not_grow_with_their_messages(tmp_path, monkeypatch, buffer):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cars.jsonl"
    path.touch()
    buffer = buffer.replace("this.light,", "this.light, end_of_input: keep,")
    run = Run(COUNTING % (buffer, "sum"))
    sizes = []
    for number in range(3):
        lights = [f"light {n}" for n in range(20)]
        write_lines(path, cars([number + part / 100 for part in range(50)], lights=lights))
        run.step((T + number) * SECOND)
        values = [store.values.values() for store in run.state.stores]
        sizes.append(sum(len(value) for some in values for value in some))
        statuses = run.delivery.statuses.values()
        assert sum(status["held"] for status in statuses) == 1000 * (number + 1)
    assert sizes[2] < 1.2 * sizes[0] < 20 * 400


KEEPING = TUMBLING.replace("emit: each", "emit: each, end_of_input: keep")


def heads(run: Run) -> list[dict]:
    """What the shards know of all their keys."""
    return [json.loads(store.values[0, -1]) for store in run.state.stores]


def mappings(run: Run) -> set[str]:
    """The names that the mappings give their sums for which windows are folded."""
    texts = [text for head in heads(run) for text in head.get("texts", ())]
    return {name for text in texts for name in ("first", "second", "third") if f'"{name}":' in text}


def went_on(before: Run | None, name: str, second: int) -> Run:
    """Start with a mapping, on what an earlier start left, and let cars come at a second."""
    write_lines(Path("cars.jsonl"), cars([second], lights="ab"))
    text = COUNTING.replace('"first": this.p', '"p": this.p') % (KEEPING, name)
    run = Run(text, None if before is None else before.state, f"start at {second}")
    run.step((T + second) * SECOND)
    return run


def test_mappings_that_no_open_window_is_folded_for_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = went_on(None, "first", 1)
    assert mappings(run) == {"first"}
    run = went_on(run, "second", 2)  # into the windows that there are
    assert [one["first"] for one in run.printed()] == [2, 2]
    assert mappings(run) == {"first"}
    run = went_on(run, "second", 11)
    assert [one["second"] for one in run.printed()] == [1, 1]
    assert mappings(run) == {"second"}
    run = went_on(run, "third", 12)
    run = went_on(run, "third", 21)
    assert mappings(run) == {"third"}
    assert all(len(head["texts"]) <= 2 for head in heads(run) if "texts" in head)


def test_a_state_that_does_not_say_which_mappings_are_used_keeps_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = went_on(None, "first", 1)
    for store, head in zip(run.state.stores, heads(run), strict=True):
        if "texts" in head:
            del head["uses"], head["sizes"]
            store.values[0, -1] = json.dumps({**head, "version": 2}).encode()
    run = went_on(run, "second", 2)
    assert [one["first"] for one in run.printed()] == [2, 2]
    run = went_on(run, "second", 11)
    assert mappings(run) == {"first", "second"}
    assert [one["second"] for one in run.printed()] == [1, 1]


def test_the_bytes_that_are_held_are_also_those_of_what_windows_have_come_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = COUNTING.replace(".sum()", ".unique()") % (KEEPING, "plates")
    path = tmp_path / "cars.jsonl"
    path.touch()
    run = Run(text)
    held = []
    for plates in (range(10), range(10, 1000)):
        write_lines(path, [{"ts": T + 1, "light": "a", "p": f"plate {n:06}"} for n in plates])
        run.step((T + 2) * SECOND)
        held.append(sum(status["held_bytes"] for status in run.delivery.statuses.values()))
    assert held[1] - held[0] >= 990 * len("plate 000000")
    assert held[1] < 2 * 1000 * len("plate 000000")
