"""Samples on the driver, and windows that closed of late."""

from __future__ import annotations

from typing import Any

import orjson

from streamer.core.message import Message
from streamer.engine.report.message_sampler import SAMPLES_PER_COMPONENT
from streamer.engine.report.message_samples import (
    MAX_KEPT_PER_COMPONENT,
    MAX_OPEN_S,
    MessageSamples,
)
from streamer.engine.report.result_frame import TaskReport
from streamer.engine.report.window_history import WindowHistory

KEY = ("processor", "check", "root.pipeline.processors.0")


def test_a_tap_is_open_for_a_while_and_no_longer_than_it_may() -> None:
    clock = [100.0]
    tap = MessageSamples(lambda: clock[0])
    assert tap.per_task == 0
    assert tap.open(10)
    assert tap.per_task > 0
    assert not tap.open(1_000_000), "it was open already"
    clock[0] += MAX_OPEN_S + 1
    assert tap.per_task == 0


def test_samples_come_from_a_task_to_the_driver() -> None:
    before = SAMPLES_PER_COMPONENT.set(1)
    try:
        task = TaskReport("INFO")
    finally:
        SAMPLES_PER_COMPONENT.reset(before)
    assert task.execution.sampler is not None
    task.execution.sampler.sample([Message(b"a")], KEY, "before")
    body = dict((int(kind), body) for kind, body in task.frames())[9]
    tap = MessageSamples()
    tap.record(body, 7)
    [sample] = tap.samples(KEY[2])
    assert sample["before"] == [[{"content": "a"}]]
    assert (sample["at"], sample["label"]) == (7, "check")
    assert tap.samples("root.output") == []
    assert tap.samples(after=sample["number"]) == []


def test_a_task_takes_no_samples_when_nobody_watches() -> None:
    assert TaskReport("INFO").execution.sampler is None


def test_the_newest_are_kept_and_those_that_failed_are_kept_apart() -> None:
    tap = MessageSamples()
    failed = {"before": [], "failed": True}
    tap.record(orjson.dumps([["", "root.input", [failed]]]), 0)
    for _ in range(MAX_KEPT_PER_COMPONENT * 3):
        tap.record(orjson.dumps([["", "root.input", [{"before": [], "failed": False}]]]), 0)
    found = tap.samples()
    assert len(found) == MAX_KEPT_PER_COMPONENT + 1
    assert found[0]["failed"]


def status(now: int, dropped: int = 0, **more: Any) -> dict[str, Any]:
    return {"now": now, "counters": {"dropped": {"late": dropped}}, **more}


def test_windows_that_close_are_remembered_with_the_start_that_they_had() -> None:
    recent = WindowHistory(lambda: 0)
    recent.record(0, [status(1, open=[{"start": 10, "end": 20, "messages": 3, "size": 1}])])
    closed = [{"end": 20, "messages": 2, "reason": "final"}]
    recent.record(1, [status(25, closed=closed), status(25, closed=closed)])
    recent.record(1, [status(25, closed=closed)])
    [one] = recent.closed_windows()
    assert (one.start, one.end, one.messages, one.at) == (10, 20, 4, 25)


def test_only_what_is_dropped_from_now_on_is_told() -> None:
    recent = WindowHistory(lambda: 0)
    recent.record(0, [status(1, dropped=100)])
    assert recent.drops() == []
    recent.record(1, [status(2, dropped=100)])
    recent.record(2, [status(3, dropped=103)])
    [drop] = recent.drops()
    assert (drop.at, drop.reason, drop.messages) == (3, "late", 3)


def test_the_event_time_is_the_clock_less_the_lag() -> None:
    recent = WindowHistory(lambda: 50 * 10**9)
    recent.record(0, [], 2.5)
    assert recent.event_time == 47_500_000_000
    recent.record(1, [status(1)], 2.5)
    recent.record(2, [status(2, dropped=1)], 2.5)
    assert recent.drops()[0].event_time == 47_500_000_000
