"""What an event costs in the shuffle, by Spark's own count."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.bench import answers, jobs, traffic

from .conftest import Runner

pytestmark = pytest.mark.spark

EVENTS = 20_000
"""In one micro-batch: the fewer there are, the more bytes each of them is."""
MOST = 30
"""Bytes of an event, of about 115 that it has."""

AHEAD = 7 * 24 * 3600
"""Seconds by which events are ahead of the clock, so that windows close at the end only."""


def shuffled(session: Any) -> int:
    """Return the bytes that all stages so far have written for a shuffle."""
    store = session.sparkContext._jsc.sc().statusStore()
    defaults = [getattr(store, f"stageList$default${place}")() for place in (2, 3, 4, 5)]
    stages = store.stageList(None, *defaults)
    return sum(stages.apply(number).shuffleWriteBytes() for number in range(stages.size()))


@pytest.mark.parametrize("whole", [False, True], ids=["folded", "whole"])
def test_an_event_of_the_traffic_lights_is_few_bytes_in_the_shuffle(
    whole: bool, session: Any, run_stream: Runner, tmp_path: Path
) -> None:
    origin = time.time() // 10 * 10 + AHEAD
    paths = traffic.write(tmp_path / "files", EVENTS, 1, origin, EVENTS / 20)
    pattern, out = tmp_path / "files" / "*.jsonl", tmp_path / "out.jsonl"
    before = shuffled(session)
    ran = run_stream(jobs.windowed(pattern, out, "10s", master="local[2]", whole=whole))
    taken = shuffled(session) - before
    assert ran.last.messages == EVENTS
    want = answers.expected(answers.read(paths), 10, 10)
    assert answers.differences(want, answers.given(out.read_bytes().splitlines())) == ""
    assert 1 < taken / EVENTS <= MOST
