"""A canary beside a stream of the service: what it sees, what it leaves, and what it must not do.

The oracle is plain Python: windows are made of events that the test sends, and it knows which of
them a changed config makes differently.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.kafka import Kafka, Record

from .service import Service, service

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
START = 1_700_000_000
WINDOWS = 1_000
CONFIG = """
input: {{ http_server: {{ path: /post }} }}
buffer:
  tumbling_window: {{ timestamp_mapping: root = this.at, size: 1s }}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{ "at": this.at, "n": batch_size(), "sum": {total} }}
        }} else {{ deleted() }}
output: {{ file: {{ path: {out}, codec: lines }} }}
"""
TOTAL = 'json("v").from_all().sum()'


class Stream:
    """A stream of a service, and what it writes."""

    def __init__(self, running: Service, directory: Path, name: str) -> None:
        self.service, self.name = running, name
        self.out = directory / f"{name}.jsonl"
        self.files = directory / "s" / "c" / ".service" / "canaries"
        answer = running.ask("POST", f"/streams/{name}", self.config())
        assert answer.status_code == 200, answer.text
        self.wait_for_batch()

    def config(self, total: str = TOTAL) -> str:
        return CONFIG.format(out=self.out, total=total)

    def wait_for_batch(self) -> None:
        path = f"/streams/{self.name}/progress"
        self.service.wait_for(
            lambda: self.service.ask("GET", path).json()["micro_batch"] >= 0, 240, "for a batch"
        )

    def send(self, first: int, last: int) -> None:
        """Send an event of each second; a line of the body is a message."""
        for at in range(first, last):
            body = json.dumps({"at": START + at, "v": at})
            answer = self.service.ask("POST", f"/{self.name}/post", body)
            assert answer.status_code == 200, answer.text

    def begin(self, config: str, **query: Any) -> None:
        text = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.service.ask("POST", f"/streams/{self.name}/canary?{text}", config)
        assert answer.status_code == 200, answer.text
        self.wait_state("starting", is_not=True)

    def canary(self) -> dict[str, Any]:
        found: dict[str, Any] = self.service.ask("GET", f"/streams/{self.name}/canary").json()
        document: dict[str, Any] = found["canary"]
        return document

    def wait_state(self, *states: str, is_not: bool = False) -> dict[str, Any]:
        self.service.wait_for(
            lambda: (self.canary()["state"] in states) != is_not, 240, f"for {states} {is_not}"
        )
        return self.canary()

    def written(self) -> list[dict[str, Any]]:
        text = self.out.read_text() if self.out.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def wait_written(self, windows: int) -> None:
        self.service.wait_for(lambda: len(self.written()) >= windows, 240, "for windows")

    def is_clean(self) -> bool:
        return not self.files.exists()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    directory = tmp_path_factory.mktemp("canary")
    with service(directory / "s") as found:
        found.wait_running()
        yield found, directory


def test_one_changed_field_in_one_of_a_thousand_windows_is_noticed(
    running: tuple[Service, Path],
) -> None:
    """The canary begins in the middle of a window, and is dropped by its rule."""
    changed = random.Random(SEED).randrange(100, WINDOWS - 10)
    print(f"seed {SEED}, window {changed}")
    stream = Stream(*running, "noticed")
    stream.send(0, 5)
    total = f"if this.at == {START + changed} {{ -1 }} else {{ {TOTAL} }}"
    stream.begin(stream.config(total), windows=WINDOWS, max_differences=1, promote="auto")
    stream.send(5, WINDOWS + 1)
    # The last one closes by nothing: a window more, and the number is reached.
    stream.send(WINDOWS + 1, WINDOWS + 6)
    canary = stream.wait_state("promoted")
    assert canary["compared"] >= WINDOWS and canary["different"] == canary["changed"] == 1
    [difference] = canary["differences"]
    assert difference["kind"] == "changed"
    [field] = difference["fields"]
    assert field == {"path": "sum", "old": str(changed), "new": "-1", "row": 0}
    # Outside, there are the windows of the stream alone, each of them once.
    stream.wait_written(WINDOWS)
    found = Counter(line["at"] for line in stream.written())
    assert set(found.values()) == {1} and len(found) >= WINDOWS
    assert all(line["sum"] == line["at"] - START for line in stream.written())
    assert stream.is_clean()


def test_a_rule_drops_what_differs_too_much_and_a_person_may_promote_it(
    running: tuple[Service, Path],
) -> None:
    stream = Stream(*running, "ruled")
    stream.begin(stream.config("0"), windows=50, promote="auto")
    stream.send(0, 8)
    canary = stream.wait_state("dropped")
    assert canary["outcome"] == "different" and stream.is_clean()
    assert stream.service.ask("GET", "/streams/ruled").json()["revision"] == 1
    stream.begin(stream.config("0"), windows=3)
    stream.send(8, 16)
    canary = stream.wait_state("waiting")
    # The window that was open at the copy finishes with the mapping that it began with.
    assert canary["different"] == canary["compared"] - 1 >= 3 and stream.is_clean()
    answer = stream.service.ask("POST", "/streams/ruled/canary/promote")
    assert answer.json()["revision"] == 2
    stream.send(16, 20)
    stream.service.wait_for(lambda: stream.written()[-1]["sum"] == 0, 60, "for the new revision")
    assert stream.service.ask("POST", "/streams/ruled/canary/promote").status_code == 409


def test_a_canary_that_fails_or_is_dropped_leaves_nothing(running: tuple[Service, Path]) -> None:
    stream = Stream(*running, "failing")
    crashing = stream.config().replace(
        "  processors:\n", "  processors:\n    - crash: 'it is broken'\n"
    )
    stream.begin(crashing, windows=1000)
    stream.send(0, 5)
    canary = stream.wait_state("dropped")
    assert canary["outcome"] == "failed" and "it is broken" in canary["reason"]
    assert stream.is_clean()
    stream.begin(stream.config("1"), windows=1000)
    stream.send(5, 9)
    assert stream.service.ask("DELETE", "/streams/failing/canary").status_code == 200
    assert stream.canary()["state"] == "dropped" and stream.is_clean()
    # A deploy meanwhile ends it too.
    stream.begin(stream.config("1"), windows=1000)
    assert stream.service.ask("PUT", "/streams/failing", stream.config("2")).status_code == 200
    assert stream.wait_state("dropped")["outcome"] == "changed"
    assert stream.is_clean()
    stream.send(9, 14)
    stream.service.wait_for(lambda: len(stream.written()) >= 13, 120, "for all windows")
    assert [line["at"] - START for line in stream.written()] == list(range(13))
    spools = (running[1] / "s" / "c" / "failing").rglob("*.seg")
    assert sum(1 for _ in spools) <= 2, "the input forgets what it has kept for the canary"


def test_a_service_that_is_killed_leaves_nothing_of_a_canary(tmp_path: Path) -> None:
    with service(tmp_path / "s") as first:
        first.wait_running()
        stream = Stream(first, tmp_path, "killed")
        stream.send(0, 3)
        stream.begin(stream.config("1"), windows=1000)
        stream.send(3, 8)
        assert not stream.is_clean()
        first.kill()
    with service(tmp_path / "s") as second:
        second.wait_running()
        assert stream.is_clean()
        assert second.ask("GET", "/streams/killed/canary").json() == {"canary": None}
        stream.service = second
        stream.wait_for_batch()
        stream.send(8, 12)
        second.wait_for(lambda: len(stream.written()) >= 11, 120, "for all windows")
        assert [line["sum"] for line in stream.written()] == list(range(11))


SEVERAL = """
input: {{ http_server: {{ path: /post }} }}
buffers:
  - label: pairs
    count_window: {{ count: 2 }}
    pipeline:
      processors:
        - mapping: |
            root = {{ "at": this.at, "sum": {total} }}
            root = if batch_index() > 0 {{ deleted() }}
    output: {{ file: {{ path: {out}, codec: lines }} }}
  - label: visits
    session_window: {{ timestamp_mapping: root = this.at, gap: 1500ms }}
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {{ {{ "visit": batch_size() }} }} else {{ deleted() }}
    output: {{ drop: {{}} }}
"""


def test_count_windows_and_sessions_of_several_buffers_are_compared(
    running: tuple[Service, Path],
) -> None:
    stream = object.__new__(Stream)
    stream.service, stream.name = running[0], "several"
    stream.out = running[1] / "several.jsonl"
    stream.files = running[1] / "s" / "c" / ".service" / "canaries"
    config = SEVERAL.format(out=stream.out, total=TOTAL)
    answer = running[0].ask("POST", "/streams/several", config)
    assert answer.status_code == 200, answer.text
    stream.wait_for_batch()
    stream.send(0, 4)
    changed = f"if this.at == {START + 10} {{ -1 }} else {{ {TOTAL} }}"
    stream.begin(SEVERAL.format(out=stream.out, total=changed), windows=12)
    # Three sessions, the last of which stays open, and a dozen pairs.
    for first in (4, 14, 24):
        stream.send(first, first + 8)
    canary = stream.wait_state("waiting")
    assert canary["compared"] >= 12 and canary["different"] == 1, canary
    [difference] = canary["differences"]
    assert (difference["buffer"], difference["start"], difference["end"]) == ("pairs", "10", "12")
    assert difference["fields"] == [{"path": "sum", "old": "21", "new": "-1", "row": 0}]
    assert stream.is_clean()


def test_the_canary_of_a_topic_reads_the_same_offsets_and_commits_none(
    running: tuple[Service, Path], kafka: Kafka
) -> None:
    topic = kafka.create("canary", partitions=2)
    stream = object.__new__(Stream)
    stream.service, stream.name = running[0], "topic"
    stream.out = running[1] / "topic.jsonl"
    stream.files = running[1] / "s" / "c" / ".service" / "canaries"
    reading = (
        f"kafka: {{ addresses: ['{kafka.bootstrap}'], topics: [{topic}], consumer_group: {topic} }}"
    )
    config = stream.config().replace("http_server: { path: /post }", reading)
    assert reading in config
    answer = running[0].ask("POST", "/streams/topic", config)
    assert answer.status_code == 200, answer.text

    def send(first: int, last: int) -> None:
        values = (json.dumps({"at": START + at, "v": at}).encode() for at in range(first, last))
        kafka.produce(topic, *(Record(value, b"key", partition=0) for value in values))

    send(0, 10)
    stream.wait_written(9)
    # A key of the records is read by the changed config alone.
    changed = config.replace(TOTAL, f'if @kafka_key == "key" {{ {TOTAL} }} else {{ 0 }}')
    stream.begin(changed, windows=20)
    send(10, 40)
    canary = stream.wait_state("waiting")
    assert canary["compared"] >= 20
    # The stream has kept no key in the window that was open at the copy.
    assert {one["fields"][0]["old"] for one in canary["differences"]} <= {"9"}, canary
    assert stream.is_clean()
    stream.wait_written(39)
    assert [line["sum"] for line in stream.written()] == list(range(39))
    running[0].wait_for(
        lambda: kafka.group_offsets(topic).get((topic, 0)) == 40, 60, "for the group's offsets"
    )
