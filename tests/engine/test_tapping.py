"""Samples on the driver, and windows that closed of late."""

from __future__ import annotations

from typing import Any

import orjson

from streamer.engine.recent import Recent
from streamer.engine.tapping import KEPT, LONGEST, Tap
from streamer.engine.task import Task
from streamer.message import Message
from streamer.sampling import WANTED

KEY = ("processor", "check", "root.pipeline.processors.0")


def test_a_tap_is_open_for_a_while_and_no_longer_than_it_may() -> None:
    clock = [100.0]
    tap = Tap(lambda: clock[0])
    assert tap.most == 0
    assert tap.open(10)
    assert tap.most > 0
    assert not tap.open(1_000_000), "it was open already"
    clock[0] += LONGEST + 1
    assert tap.most == 0


def test_samples_come_from_a_task_to_the_driver() -> None:
    before = WANTED.set(1)
    try:
        task = Task("INFO")
    finally:
        WANTED.reset(before)
    assert task.execution.sampler is not None
    task.execution.sampler.note([Message(b"a")], KEY, "before")
    body = dict((int(kind), body) for kind, body in task.said())[9]
    tap = Tap()
    tap.hear(body, 7)
    [sample] = tap.samples(KEY[2])
    assert sample["before"] == [[{"content": "a"}]]
    assert (sample["at"], sample["label"]) == (7, "check")
    assert tap.samples("root.output") == []
    assert tap.samples(after=sample["number"]) == []


def test_a_task_takes_no_samples_when_nobody_watches() -> None:
    assert Task("INFO").execution.sampler is None


def test_the_newest_are_kept_and_those_that_failed_are_kept_apart() -> None:
    tap = Tap()
    failed = {"before": [], "failed": True}
    tap.hear(orjson.dumps([["", "root.input", [failed]]]), 0)
    for _ in range(KEPT * 3):
        tap.hear(orjson.dumps([["", "root.input", [{"before": [], "failed": False}]]]), 0)
    found = tap.samples()
    assert len(found) == KEPT + 1
    assert found[0]["failed"]


def status(now: int, dropped: int = 0, **more: Any) -> dict[str, Any]:
    return {"now": now, "counters": {"dropped": {"late": dropped}}, **more}


def test_windows_that_close_are_remembered_with_the_start_that_they_had() -> None:
    recent = Recent(lambda: 0)
    recent.hear(0, [status(1, open=[{"start": 10, "end": 20, "messages": 3, "size": 1}])])
    closed = [{"end": 20, "messages": 2, "reason": "final"}]
    recent.hear(1, [status(25, closed=closed), status(25, closed=closed)])
    recent.hear(1, [status(25, closed=closed)])
    [one] = recent.closed()
    assert (one.start, one.end, one.messages, one.at) == (10, 20, 4, 25)


def test_only_what_is_dropped_from_now_on_is_told() -> None:
    recent = Recent(lambda: 0)
    recent.hear(0, [status(1, dropped=100)])
    assert recent.drops() == []
    recent.hear(1, [status(2, dropped=100)])
    recent.hear(2, [status(3, dropped=103)])
    [drop] = recent.drops()
    assert (drop.at, drop.reason, drop.messages) == (3, "late", 3)


def test_the_event_time_is_the_clock_less_the_lag() -> None:
    recent = Recent(lambda: 50 * 10**9)
    recent.hear(0, [], 2.5)
    assert recent.event_time == 47_500_000_000
    recent.hear(1, [status(1)], 2.5)
    recent.hear(2, [status(2, dropped=1)], 2.5)
    assert recent.drops()[0].event_time == 47_500_000_000
