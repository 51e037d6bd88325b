"""Revisions that take each other's place while the stream runs: nothing is lost, nothing twice."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.plan.change_impact import judge
from streamer.service.monitoring.readiness import check_readiness
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.run.revision_switch import DeployError, OnReset, RevisionChange
from streamer.service.run.stream_run import StreamRun
from tests.servers.kafka import Kafka

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


def unbuffered(text: str) -> str:
    """Return the config without windows, by C."""
    begin, end = text.index("buffer:"), text.index("pipeline:")
    bare = text[:begin] + text[end:]
    return bare.replace('json("id").from_all().unique()', '[json("id")]').replace('"A"', '"C"')


@contextmanager
def looking_at(view: StreamView) -> Iterator[set[tuple[bool, str]]]:
    """Give whether a stream was ready within the block, and what it said of that."""
    found, over = set[tuple[bool, str]](), threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            ready, body = check_readiness(view)
            found.add((ready, body.get("error", "")))

    looks = threading.Thread(target=look)
    looks.start()
    try:
        yield found
    finally:
        over.set()
        looks.join()


class Living:
    """A run of a stream that is looked after by the test."""

    def __init__(self, text: str, session: Any, folder: Path) -> None:
        self.log: list[tuple[str, str, Any]] = []
        config = parse_config(text, "a.yaml")
        self.view = StreamView(config)
        self.life = StreamRun(config, make_plan(config), str(folder / "c"), self._said, self.view)
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
        return self.life.replace(RevisionChange(config, judgement, on_reset, **more))

    def close(self) -> None:
        try:
            assert self.life.stop_gracefully(60 * 10**9)
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


@pytest.mark.smoke
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


def test_windows_that_cannot_go_on_are_let_out_and_new_ones_go_on_from_there(
    living, tmp_path
) -> None:
    out = tmp_path / "out.jsonl"
    text = CONFIG.replace("OUT", str(out)).replace("SIZE", "1h")
    stream = living(text)
    stream.takes(300)
    with looking_at(stream.view) as seen:
        done = stream.deploy(text.replace("1h", "2h").replace('"A"', '"B"'), OnReset.DRAIN)
    assert (False, "a deploy lets the open windows out") in seen
    assert {ready for ready, error in seen if error} == {False}
    # It starts anew with its windows: ready once a micro-batch has gone through.
    stream.until(lambda: check_readiness(stream.view)[1].get("error") is None)
    print("pause", done.pause)
    first = every_id_once(out)
    assert len(first) >= 300 and {one["by"] for one in windows(out)} == {"A"}
    stream.takes(300)
    # The third one keeps nothing; what the second one holds is let out as well.
    stream.deploy(unbuffered(text), OnReset.DRAIN)
    second = every_id_once(out)
    assert len(second) >= len(first) + 300
    stream.until(lambda: len(windows(out)) > 300)
    every_id_once(out)
    assert {one["by"] for one in windows(out)} == {"A", "B", "C"}


def test_windows_that_are_discarded_are_counted_and_nothing_else_is_lost(living, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    text = CONFIG.replace("OUT", str(out)).replace("SIZE", "1h")
    stream = living(text)
    stream.takes(300)
    done = stream.deploy(text.replace("1h", "2h"), OnReset.DISCARD)
    assert done.discarded >= 300 and not windows(out)
    assert any(
        "drops the windows" in line and fields["messages"] == done.discarded
        for _, line, fields in stream.log
    )
    stream.takes(300)
    stream.deploy(text.replace("1h", "3h"), OnReset.DRAIN)
    ids = [one for window in windows(out) for one in window["ids"]]
    assert ids == list(range(done.discarded, done.discarded + len(ids))) and len(ids) >= 300


def test_another_input_begins_when_what_the_former_one_has_received_is_out(
    living, tmp_path
) -> None:
    out, source = tmp_path / "out.jsonl", tmp_path / "in.jsonl"
    text = CONFIG.replace("OUT", str(out)).replace("SIZE", "1h")
    stream = living(text)
    stream.takes(300)
    source.write_text("".join(f'{{"id":{-n},"at":"2026-01-01T00:00:00Z"}}\n' for n in range(1, 9)))
    begin, end = text.index("  generate"), text.index("buffer:")
    stream.deploy(f"{text[:begin]}  file: {{paths: [{source}]}}\n{text[end:]}", OnReset.DRAIN)
    former = every_id_once(out)
    assert len(former) >= 300
    deadline = time.monotonic() + 120
    while not stream.life.poll():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ids = [one for window in windows(out) for one in window["ids"]]
    assert sorted(ids) == [*range(-8, 0), *former]


STRICT = """    - mapping: root = throw("no good")
output: """


def test_a_revision_that_fails_goes_again_and_no_window_has_noticed(living, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    text = CONFIG.replace("OUT", str(out)).replace("SIZE", "5s")
    stream = living(text)
    stream.until(lambda: len(windows(out)) >= 1)
    bad = text.replace("output: ", STRICT) + "error_handling: {strict: true}\n"
    came_back: list[Any] = []
    stream.life.on_rollback = came_back.append
    stream.deploy(bad, probation=600.0)
    stream.until(lambda: bool(came_back))
    assert any("the former one comes back" in line for _, line, _ in stream.log)
    count = len(windows(out))
    stream.until(lambda: len(windows(out)) >= count + 2)
    every_id_once(out)
    assert stream.life.config is came_back[0]


class Sender(threading.Thread):
    """Posts numbered messages, each until it is taken."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.taken = 0
        self.refused = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            body = json.dumps({"id": self.taken, "at": time.time()}).encode()
            try:
                with urllib.request.urlopen(self.url, body, timeout=30):
                    self.taken += 1
            except OSError:
                self.refused += 1
                self.over.wait(0.05)

    def end(self) -> int:
        self.over.set()
        self.join(60)
        return self.taken


@pytest.mark.slow
def test_nobody_who_sends_notices_a_deploy(living, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    begin, end = CONFIG.index("  generate"), CONFIG.index("buffer:")
    served = f"  http_server: {{address: '{address}', path: /in}}\n"
    text = CONFIG[:begin] + served + CONFIG[end:]
    text = text.replace("OUT", str(out)).replace("SIZE", "2s")
    stream = living(text)
    sender = Sender(f"http://{address}/in")
    sender.start()
    for number, size in enumerate(("2s", "3s", "3s", "1s")):
        stream.takes(stream.life.snapshot().messages + 50)
        revision = text.replace("2s", size).replace('"A"', f'"{number}"')
        stream.deploy(revision, OnReset.DRAIN)
    stream.takes(stream.life.snapshot().messages + 50)
    sent = sender.end()
    stream.deploy(text.replace("2s", "9s"), OnReset.DRAIN)
    # What had landed, and was not read before the last deploy, is in the windows after it.
    stream.until(lambda: stream.life.snapshot().batch >= 0)
    left = sent - len(every_id_once(out))
    stream.takes(left)
    stream.deploy(text.replace("2s", "8s"), OnReset.DRAIN)
    assert every_id_once(out) == list(range(sent))
    assert sender.refused == 0


@pytest.mark.slow
def test_kafka_is_read_on_from_where_windows_were_let_out(living, tmp_path, kafka: Kafka) -> None:
    out = tmp_path / "out.jsonl"
    topic = kafka.create("deploys", partitions=2)
    begin, end = CONFIG.index("  generate"), CONFIG.index("buffer:")
    read = (
        f"  kafka: {{addresses: ['{kafka.bootstrap}'], topics: [{topic}], "
        "consumer_group: deploys, start_from_oldest: true}\n"
    )
    text = CONFIG[:begin] + read + CONFIG[end:]
    text = text.replace("OUT", str(out)).replace("SIZE", "1h")

    def produce(first: int, last: int) -> None:
        now = time.time()
        kafka.produce(topic, *[json.dumps({"id": n, "at": now}) for n in range(first, last)])

    produce(0, 100)
    stream = living(text)
    stream.takes(100)
    produce(100, 200)
    stream.deploy(text.replace("1h", "2h"), OnReset.DRAIN)
    produce(200, 300)
    stream.deploy(text.replace("1h", "2h").replace('"A"', '"B"'))
    stream.until(lambda: stream.life.snapshot().messages + len(every_id_once(out)) >= 300)
    stream.deploy(text.replace("1h", "3h"), OnReset.DRAIN)
    assert every_id_once(out) == list(range(300))


@pytest.mark.slow
def test_an_input_that_is_to_answer_is_opened_anew_and_loses_nothing(living, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    text = f"""
http: {{enabled: false}}
input: {{http_server: {{address: '{address}', path: /in}}}}
pipeline: {{processors: [{{mapping: 'root.ids = [this.id]'}}]}}
output: {{file: {{path: {out}, codec: lines}}}}
spark: {{master: "local[2]"}}
"""
    stream = living(text)
    sender = Sender(f"http://{address}/in")
    sender.start()
    for revision in (text.replace("]'}]", "]'}, {sync_response: {}}]"), text):
        stream.takes(stream.life.snapshot().messages + 20)
        stream.deploy(revision)
    stream.takes(stream.life.snapshot().messages + 20)
    sent = sender.end()
    stream.until(lambda: len(windows(out)) >= sent)
    # A request that was cut off, and asked again, may be there twice: nobody knows who had it.
    found = [one for window in windows(out) for one in window["ids"]]
    assert sorted(set(found)) == list(range(sent))
    assert len(found) <= sent + sender.refused
