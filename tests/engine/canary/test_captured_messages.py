"""Windows without bounds in time, and joined messages, are captured and compared one by one."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamer.config.load import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.canary.emissions import EmissionsByWindow, read_emissions
from streamer.engine.canary.window_comparison import (
    ComparedBuffer,
    DifferenceKind,
    WindowComparison,
)
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.engine.report.capture_request import CAPTURES_RESULTS
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan

SEED = int(time.time()) // 3600
START_S = 1_700_000_000
TIME = "timestamp_mapping: root = this.t"
KEYED = "key_mapping: root = this.k"
TWO_INPUTS = """
input:
  broker:
    inputs:
      - {label: a, generate: {mapping: root = 1}}
      - {label: b, generate: {mapping: root = 1}}
"""
BUFFERS = {
    "tumbling_window": f"{TIME}, {KEYED}, size: 10s",
    "session_window": f"{TIME}, {KEYED}, gap: 2s",
    "count_window": f"{KEYED}, count: 5, every: 2",
    "state_window": f"{KEYED}, begin_when: this.id % 7 == 0, emit_when: this.id % 5 == 0",
    "window_join": f"left: a, right: b, {TIME}, {KEYED}, within: 5s, type: left",
    "table_join": f"stream: a, table: b, {KEYED}",
}


@dataclass
class Tap:
    """Receives results in the place of a canary's tap."""

    by_batch: list[EmissionsByWindow] = field(default_factory=list)

    def begin_batch(self, number: int) -> None:
        """Nothing is to be done before the first micro-batch."""

    def take_results(self, batch: int, frames: Sequence[Frame]) -> None:
        """Keep the results of a micro-batch."""
        results = [(one.shard, one.body) for one in frames if one.kind == FrameKind.RESULT]
        self.by_batch.append(read_emissions(results, 1))


@contextmanager
def capturing() -> Iterator[None]:
    token = CAPTURES_RESULTS.set(True)
    try:
        yield
    finally:
        CAPTURES_RESULTS.reset(token)


def make_events() -> list[ScriptedMessage]:
    rng = random.Random(SEED)
    return [
        ScriptedMessage(
            Message.from_value(
                {"id": n, "t": START_S + n + rng.random() * 3, "k": rng.choice("xyz")}
            ),
            input=rng.choice("ab"),
        )
        for n in range(300)
    ]


def run(buffer: str, expression: str) -> Tap:
    """Run the events in ten micro-batches; return what was captured."""
    text = TWO_INPUTS if "join" in buffer else ""
    text += f"buffer: {{{buffer}: {{{BUFFERS[buffer]}}}}}\n"
    content = "this.left.id" if "join" in buffer else "this.id"
    mapping = f"root = {{'id': {content}, 'value': {expression.replace('ID', content)}}}"
    text += f'pipeline: {{processors: [{{mapping: "{mapping}"}}]}}'.replace("'", '\\"')
    events = make_events()
    with capturing():
        stream = ScriptedStream(make_plan(parse_config(text), level="OFF"), known=events)
        tap: Any = Tap()
        stream._delivery.window_tap = tap
        for number in range(10):
            some = events[number * 30 : number * 30 + 30]
            stream.run_micro_batch(number * SECOND, some, ended=number == 9)
    return tap


def compare(old: Tap, new: Tap) -> WindowComparison:
    comparison = WindowComparison()
    for before, after in zip(old.by_batch, new.by_batch, strict=True):
        comparison.compare(before, after)
    return comparison


@pytest.mark.parametrize("buffer", BUFFERS)
def test_each_result_is_compared_and_the_changed_one_differs(buffer: str) -> None:
    old = run(buffer, "1")
    emitted = [one for batch in old.by_batch for ones in batch.values() for one in ones]
    assert len(emitted) > 10, f"seed {SEED}"
    assert compare(old, run(buffer, "1")).counts.differences == 0

    changed = next(iter(old.by_batch[4].values()))[0][0].content
    number = changed.partition(b'"id":')[2].partition(b",")[0].decode()
    comparison = compare(old, run(buffer, f"if ID == {number} {{ 2 }} else {{ 1 }}"))

    assert comparison.counts.windows == len(emitted)
    assert comparison.counts.changed >= 1 and comparison.counts.added == 0
    assert {one.kind for one in comparison.differences} == {DifferenceKind.CHANGED}
    fields = {one.path for each in comparison.differences for one in each.fields}
    assert fields == {"value"}
    ids = [
        row.content for each in emitted for row in each if f'"id":{number},'.encode() in row.content
    ]
    assert comparison.counts.changed <= len(ids), f"seed {SEED}"


def test_count_windows_are_named_by_the_numbers_of_their_messages() -> None:
    old, new = (run("count_window", value) for value in "12")
    document = compare(old, new).differences[0].to_document([ComparedBuffer("", False)])
    assert document["start"].isdigit() and int(document["end"]) - int(document["start"]) == 5
    assert document["key"] in "xyz" and document["emit"] == "count"


def test_pairs_are_named_by_their_times_and_their_key() -> None:
    old, new = (run("window_join", value) for value in "12")
    documents = [
        one.to_document([ComparedBuffer("", True)]) for one in compare(old, new).differences
    ]
    assert {one["emit"] for one in documents} >= {"event", "final"}
    assert all(one["start"].startswith("2023-11-14T22:") for one in documents)
    assert {one["key"] for one in documents} == {"x", "y", "z"}
