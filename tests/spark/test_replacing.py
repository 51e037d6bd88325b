"""Revisions that take each other's place while the stream runs: nothing is lost, nothing twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.plan.judgement import judge
from streamer.service.life import Life
from streamer.service.replacing import DeployError, OnReset
from streamer.service.view import StreamView

pytestmark = pytest.mark.spark

CONFIG = """
http: {enabled: false}
input:
  generate:
    interval: 2ms
    mapping: |
      root.id = count("id") - 1
      root.at = now()
buffer:
  tumbling_window: {timestamp_mapping: root = this.at, size: SIZE}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {"by": "A", "end": meta("window_end_timestamp"), "ids": json("id").from_all().unique()}
        } else { deleted() }
output: {file: {path: OUT, codec: lines}}
spark: {master: "local[2]", shards: 1}
"""


class Living:
    """A run of a stream that is looked after by the test."""

    def __init__(self, text: str, session: Any, folder: Path) -> None:
        self.log: list[tuple[str, str, Any]] = []
        config = parse_config(text, "a.yaml")
        self.life = Life(
            config, make_plan(config), str(folder / "c"), self._said, StreamView(config)
        )
        self.life.open()
        self.life.start(session)

    def _said(self, *line: Any) -> None:
        self.log.append(line)

    def until(self, what: Callable[[], bool], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not what():
            assert not self.life.poll(), "the stream is over"
            assert time.monotonic() < end, (self.life.snapshot(), self.log[-5:])
            time.sleep(0.05)

    def takes(self, messages: int) -> None:
        self.until(lambda: self.life.snapshot().messages >= messages)

    def deploy(self, text: str, on_reset: OnReset | None = None, **more: Any) -> Any:
        config = parse_config(text, "b.yaml")
        judgement = judge(self.life.config, config)
        return self.life.replace(config, make_plan(config), judgement, on_reset, **more)

    def close(self) -> None:
        try:
            assert self.life.leave(60 * 10**9)
        finally:
            self.life.close()


@pytest.fixture
def living(session: Any, tmp_path: Path) -> Iterator[Callable[[str], Living]]:
    begun: list[Living] = []

    def begin(text: str) -> Living:
        begun.append(Living(text, session, tmp_path))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


def windows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def every_id_once(out: Path) -> list[int]:
    """Return the ids that came out; none is missing between them, and none is there twice."""
    found = Counter(one for window in windows(out) for one in window["ids"])
    assert not [one for one, times in found.items() if times > 1]
    assert sorted(found) == list(range(len(found)))
    return sorted(found)


def test_open_windows_go_on_with_another_mapping_after_a_short_pause(living, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    text = CONFIG.replace("OUT", str(out)).replace("SIZE", "5s")
    stream = living(text)
    stream.until(lambda: len(windows(out)) >= 1)
    pauses = []
    for revision in "BCD":
        before = stream.life.snapshot().messages
        pauses.append(stream.deploy(text.replace('"A"', f'"{revision}"')).pause)
        # What was held is held, and counted on.
        assert stream.life.snapshot().messages >= before
        stream.takes(before + 500)
    print("pauses", pauses)
    stream.until(lambda: any(one["by"] == "D" for one in windows(out)))
    count = len(windows(out))
    stream.until(lambda: len(windows(out)) > count)
    every_id_once(out)
    ends = [one["end"] for one in windows(out)]
    assert len(set(ends)) == len(ends), "a window that was open at a deploy is one window"


def test_a_revision_that_cannot_be_built_leaves_the_former_one_running(living, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    text = CONFIG.replace("OUT", str(out)).replace("SIZE", "2s")
    stream = living(text)
    stream.takes(100)
    running = stream.life.stream
    broken = text.replace(
        "input:\n", "input:\n  processors: [{json_schema: {schema_path: file:///nope}}]\n"
    )
    with pytest.raises(DeployError, match="does not connect.*nope"):
        stream.deploy(broken)
    assert stream.life.stream is running
    with pytest.raises(DeployError, match="on_reset=drain"):
        stream.deploy(text.replace("2s", "3s"))
    assert stream.life.stream is running
    stream.takes(stream.life.snapshot().messages + 100)
