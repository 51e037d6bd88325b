"""What a pipeline keeps of each key follows from the messages: not from cuts, shards or replays."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.engine.stage.crash_search import (
    CRASH_INSTRUCTIONS,
    CrashInstructions,
    WorkerCrashesError,
)
from streamer.plan import make_plan
from streamer.sdk.input.replayable import Limit
from streamer.window import DictStore
from streamer.window.rescale.rescale_state import rescale
from tests.examples import examples

from .stream import Run, write_lines

T = 1_700_000_000  # seconds; a multiple of 10
TTL = 20
KEYED = """
input: { file: { paths: [in.jsonl] } }
buffer:
  keyed_state:
    key_mapping: root = this.k
    timestamp_mapping: root = this.t
    state_ttl: %ds
    # order
pipeline:
  processors:
    - label: first
      mapping: |
        root = this
        root.before = lag(this.v, 2, "none")
        root.last = latest(this.v, "none")
    - label: second
      mutation: |
        root.number = acc_count()
        root.changed = had_changed(this.v)
        root.since = accumulate("since", 0, n -> if this.v == 3 { 0 } else { n + 1 })
spark: { shards: %d, master: "local[2]" }
"""
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", 1, 1.0, None, ["x"]]),
        st.sampled_from([None, 1, 2, 3]),
        st.integers(0, 90),
    ),
    max_size=40,
)
CUTS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3), st.integers(1, 2)), min_size=1)


class Oracle:
    """What is kept of each key, in plain Python."""

    def __init__(self) -> None:
        self.clock = 0
        self.kept: dict[tuple[str, str], tuple[int, Any]] = {}

    def get(self, key: str, name: str, default: Any) -> Any:
        expires, value = self.kept.get((key, name), (0, None))
        return value if expires > self.clock else default

    def put(self, key: str, name: str, value: Any) -> None:
        self.kept[key, name] = self.clock + TTL, value

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        self.clock = max(self.clock, event["t"])
        k, v = event["k"], event["v"]
        key = json.dumps(1 if k == 1 else k)
        values = self.get(key, "lag", [])
        before = values[-2] if len(values) >= 2 else "none"
        if v is not None:
            self.put(key, "lag", [*values, v][-2:])
            self.put(key, "latest", v)
        last = self.get(key, "latest", "none")
        number = self.get(key, "count", 0) + 1
        self.put(key, "count", number)
        changed = self.get(key, "changed", None) != v
        self.put(key, "changed", v)
        since = 0 if v == 3 else self.get(key, "since", 0) + 1
        self.put(key, "since", since)
        more = {"before": before, "last": last, "number": number}
        return {**event, **more, "changed": changed, "since": since}


def rescaled(run: Run, shards: int) -> None:
    into = [DictStore() for _ in range(shards)]
    assert run.plan.window is not None
    rescale(run.plan.window, True, run.state.stores, into)
    run.state.stores = into
    run.plan = replace(run.plan, shards=shards)
    run.delivery.statuses = {}


@settings(max_examples=examples(25, 300), deadline=None)
@given(events=EVENTS, cuts=CUTS)
def test_answers_depend_on_the_messages_alone(
    tmp_path_factory, monkeypatch_module, events, cuts
) -> None:
    """Whatever the cuts, the shards, the retries, and the number of shards on the way."""
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    documents = [{"k": k, "v": v, "t": T + t, "i": i} for i, (k, v, t) in enumerate(events)]
    write_lines(directory / "in.jsonl", documents)
    run = Run(KEYED % (TTL, cuts[0][1]))
    printed: list[Any] = []
    batch = None
    turn = 0
    while batch is None or not batch.ended:
        count, shards, tries = cuts[turn % len(cuts)]
        turn += 1
        batch = run.step((T + 100 + turn) * SECOND, Limit(messages=count), tries)
        printed += run.printed()
        rescaled(run, shards)
    oracle = Oracle()
    expected = [oracle.answer(document) for document in documents]
    assert sorted(printed, key=lambda one: one["i"]) == expected


@settings(max_examples=examples(25, 300), deadline=None)
@given(events=EVENTS, cuts=CUTS, lateness=st.sampled_from([0, 10, 100]))
def test_messages_wait_for_those_before_them(
    tmp_path_factory, monkeypatch_module, events, cuts, lateness
) -> None:
    """In order of event times what was kept is that of the time before, whatever came first."""
    directory = tmp_path_factory.mktemp("stream")
    monkeypatch_module.chdir(directory)
    documents = [{"k": k, "v": v, "t": T + t, "i": i} for i, (k, v, t) in enumerate(events)]
    write_lines(directory / "in.jsonl", documents)
    order = f"order: event_time\n    allowed_lateness: {lateness}s"
    run = Run((KEYED % (TTL, cuts[0][1])).replace("# order", order))
    printed: list[Any] = []
    batch = None
    turn = 0
    while batch is None or not batch.ended:
        count, shards, tries = cuts[turn % len(cuts)]
        turn += 1
        batch = run.step((T + 100 + turn) * SECOND, Limit(messages=count), tries)
        printed += run.printed()
        if not batch.ended:
            rescaled(run, shards)
    taken, clock = [], 0
    for document in documents:
        if document["t"] >= clock - lateness:
            taken.append(document)
        clock = max(clock, document["t"])
    oracle = Oracle()
    expected = [oracle.answer(one) for one in sorted(taken, key=lambda one: one["t"])]
    assert sorted(printed, key=_number) == sorted(expected, key=_number)
    assert run.snapshot.held == 0
    assert run.snapshot.dropped.get("late", 0) == len(documents) - len(taken)


def _number(document: dict[str, Any]) -> int:
    number: int = document["i"]
    return number


def test_waiting_messages_go_ahead_once_the_config_wants_the_order_of_arrival(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    documents = [{"k": "a", "v": t, "t": T + t, "i": t} for t in (5, 3, 4, 9, 1)]
    write_lines(tmp_path / "in.jsonl", documents[:3])
    text = KEYED % (TTL, 2)
    order = "order: event_time\n    allowed_lateness: 10s\n    end_of_input: keep"
    run = Run(text.replace("# order", order))
    run.step(T * SECOND)
    assert (run.printed(), run.snapshot.held) == ([], 3)
    write_lines(tmp_path / "in.jsonl", documents[3:])
    after = Run(text, run.state, "second")
    after.step((T + 1) * SECOND)
    assert [one["i"] for one in after.printed()] == [3, 4, 5, 9, 1]
    assert after.snapshot.held == 0


def test_expired_keys_are_given_back(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    documents = [{"k": f"k{i}", "v": 1, "t": T + i} for i in range(2000)]
    write_lines(tmp_path / "in.jsonl", documents)
    run = Run(KEYED % (TTL, 2))
    for turn in range(10):
        run.step((T + turn) * SECOND, Limit(messages=250))
    keys = [status["state_keys"] for status in run.delivery.statuses.values()]
    # Each bucket that was met has been looked through.
    assert sum(keys) == TTL == run.snapshot.state_keys
    sizes = [status["state_bytes"] for status in run.delivery.statuses.values()]
    assert 0 < sum(sizes) == run.snapshot.size


FOLDED = """
input: { file: { paths: [in.jsonl] } }
buffer:
  %s
pipeline:
  processors:
    %s
    - mapping: |
        root = if batch_index() == 0 {
          { "k": this.k, "sum": json("v").from_all().sum() }
        } else { deleted() }
    - mapping: |
        root = this
        root.change = this.sum - lag(this.sum, 1, this.sum)
        root.number = acc_count()
spark: { shards: 2, master: "local[2]" }
"""
BUFFERS = {
    "tumbling": "tumbling_window: { timestamp_mapping: root = this.t, size: 10s, KEY }",
    "sliding": "sliding_window: { timestamp_mapping: root = this.t, size: 9s, mode: event, KEY }",
    "session": "session_window: { timestamp_mapping: root = this.t, gap: 3s, KEY }",
    "changes": "tumbling_window: { timestamp_mapping: root = this.t, size: 10s, emit: each, KEY }",
    "count": "count_window: { count: 2, KEY }",
    "system": "system_window: { timestamp_mapping: root = this.t, size: 10s }",
    "grouped": "tumbling_window: { timestamp_mapping: root = this.t, size: 10s }",
}
BY_KEY = "- group_by_value: { value: '${! this.k }' }"


@pytest.mark.parametrize(
    ("name", "retention"), [*((name, False) for name in BUFFERS), ("session", True)]
)
def test_results_of_windows_know_those_before_them(tmp_path, monkeypatch, name, retention) -> None:
    """Each window's sum less the one before it of the same key, pre-aggregated or not."""
    monkeypatch.chdir(tmp_path)
    documents = [
        {"k": key, "v": (i * at) % 7, "t": T + i} for i in range(70) for at, key in enumerate("abc")
    ]
    write_lines(tmp_path / "in.jsonl", documents)
    buffer = BUFFERS[name].replace("KEY", "key_mapping: root = this.k")
    if retention:
        buffer = buffer.replace(" }", ", retention: 7d }")
    run = Run(FOLDED % (buffer, BY_KEY if name in ("system", "grouped") else ""))
    folds = name not in ("sliding", "count")
    assert (run.plan.aggregation.text is not None) == folds
    found: dict[str, list[Any]] = {}
    for turn in range(8):
        run.step((T + turn * 15) * SECOND, Limit(messages=40), tries=2)
        for one in run.printed():
            found.setdefault(one["k"], []).append(one)
    assert set(found) == set("abc")
    for results in found.values():
        sums = [one["sum"] for one in results]
        assert len(sums) > 5 or name == "session"
        before = [sums[0], *sums]
        assert [one["change"] for one in results] == [
            pytest.approx(now - then) for now, then in zip(sums, before, strict=False)
        ]
        assert [one["number"] for one in results] == list(range(1, len(sums) + 1))


DEADLY = """
    - switch:
        - check: this.v == 5
          processors:
            - label: deadly
              command: { name: sh, args_mapping: 'root = ["-c", "kill -SEGV $PPID; sleep 9"]' }
    - mapping: 'root = this.merge({"seen": acc_count()})'
"""


def test_state_is_right_past_messages_that_end_the_worker(tmp_path, monkeypatch) -> None:
    """What a forked process keeps is not kept."""
    monkeypatch.chdir(tmp_path)
    documents = [{"k": key, "v": i, "t": T + i} for i in range(10) for key in "ab"]
    write_lines(tmp_path / "in.jsonl", documents)
    text = (KEYED % (TTL, 2)).replace("spark:", f"{DEADLY.lstrip(chr(10))}spark:")
    run = Run(text)
    known: tuple[Any, ...] = ()
    try:
        for _ in range(5):
            before = copy.deepcopy(run.state.stores), copy.copy(run.state.offset)
            CRASH_INSTRUCTIONS.set(CrashInstructions(True, known))
            try:
                run.step(T * SECOND, tries=2)
                break
            except WorkerCrashesError as found:
                known += found.crashes
                run.state.stores, run.state.offset = before
    finally:
        CRASH_INSTRUCTIONS.set(None)
    assert len(known) == 2
    printed = run.printed()
    for key in "ab":
        mine = [one for one in printed if one["k"] == key]
        assert [one["number"] for one in mine] == list(range(1, 11))
        assert [one["seen"] for one in mine] == list(range(1, 11))


JOINED = """
input:
  broker:
    inputs:
      - { label: orders, stdin: {} }
      - { label: payments, file: { paths: [x] } }
buffer:
  window_join:
    left: orders
    right: payments
    within: 5s
    timestamp_mapping: root = this.t
    key_mapping: root = this.k
pipeline:
  processors:
    - mapping: 'root = { "k": this.left.k, "n": acc_count(), "before": lag(this.left.t) }'
"""


def test_pairs_of_a_join_have_the_state_of_their_key() -> None:
    stream = ScriptedStream(make_plan(parse_config(JOINED)))
    found = []
    for t in range(3):
        sent = [
            ScriptedMessage(Message.from_value({"k": key, "t": 10 * t}), 0, side)
            for key in (1, "x")
            for side in ("orders", "payments")
        ]
        batches = stream.run_micro_batch(t * SECOND, sent).batches
        found += [message.doc for batch in batches for message in batch]
        stream.restart()
    for key in (1, "x"):
        mine = [(one["n"], one["before"]) for one in found if one["k"] == key]
        assert mine == [(1, None), (2, 0), (3, 10)]


FAILED = """
buffer: { keyed_state: { key_mapping: root = this.k } }
pipeline: { processors: [ { mapping: 'root = {"n": acc_count()}' } ] }
"""


def test_a_message_that_has_failed_before_it_got_a_key_keeps_nothing() -> None:
    stream = ScriptedStream(make_plan(parse_config(FAILED)))
    failed = Message.from_value({"k": 1}).with_error("before")
    sent = [ScriptedMessage(one) for one in (failed, Message.from_value({"k": 1}))]
    batches = stream.run_micro_batch(SECOND, sent).batches
    assert [one.doc.get("n") for [one] in batches] == [None, 1]
    assert str(batches[0][0].error).endswith(
        "the message has no key to keep state by: it failed before it got one"
    )
