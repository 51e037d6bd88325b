"""A stream that reads Kafka while driver and broker are killed, and others join its group.

What comes out is a file, which has every message once whatever happens.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import free_port
from tests.servers.kafka import Broker, Kafka, Record

from .program import Program, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# Ten are for a run by hand: STREAMER_KILLS=10 pytest tests/faults/test_kafka_input.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
PAUSE = float(os.environ.get("STREAMER_PAUSE", "5"))
"""Seconds for which the broker answers nobody; 30 by hand."""
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))

PATIENCE = 300
PARTITIONS = 4
GROUP = "readers"

CONFIG = """
http: {{address: "127.0.0.1:{port}"}}
input:
  kafka:
    addresses: ["{broker}"]
    topics: [numbers]
    consumer_group: {group}
    start_from_oldest: true
    commit_period: {period}
pipeline:
  processors:
    # One of the messages is no JSON.
    - try:
        - mapping: 'root = "number " + this.n.string()'
    - catch:
        - mapping: 'root = "poison " + content().string()'
output: {{file: {{path: "{out}"}}}}
spark: {{master: "local[2]"}}
"""


class Source:
    """Produces numbers without end, one after the other, in all partitions."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0

    def _run(self) -> None:
        while not self._over.wait(0.1):
            # A producer waits by itself for a broker that is away, and sends nothing twice.
            self._kafka.produce(
                "numbers",
                *(
                    Record(b'{"n":%d}' % n, partition=n % PARTITIONS)
                    for n in range(self.count, self.count + 50)
                ),
                enable_idempotence=True,
            )
            self.count += 50

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join(PATIENCE)


def _lines(out: Path) -> list[str]:
    return out.read_text().splitlines() if out.exists() else []


def _more(running: Program, out: Path, why: str) -> None:
    before = len(_lines(out))
    running.wait_for(lambda: len(_lines(out)) > before, PATIENCE, why)


def _ready(port: int) -> int:
    try:
        return int(urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10).status)
    except urllib.error.HTTPError as e:
        return e.code
    except OSError:
        return 0


@contextmanager
def _in_the_group(kafka: Kafka) -> Iterator[None]:
    """Be a member of the group for a while, as somebody who mistook its name."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": GROUP, "enable.auto.commit": False}
    )
    consumer.subscribe(["numbers"])
    until = time.monotonic() + PATIENCE
    while not consumer.assignment():
        assert time.monotonic() < until, "the group takes no member"
        consumer.poll(0.2)
    try:
        yield
    finally:
        consumer.close()


def _safe(checkpoint: Path) -> dict[int, int]:
    """Where each partition stands by the newest micro-batch that Spark has committed."""
    commits = [path for path in checkpoint.glob("**/commits/*") if path.name.isdigit()]
    if not commits:
        return {}
    newest = max(commits, key=lambda path: int(path.name))
    _, _, offset = (newest.parents[1] / "offsets" / newest.name).read_text().splitlines()
    found = [json.loads(offset)["data"].get("kafka:at", {}).get("numbers", {})]
    return {int(number): at for of_topic in found for number, at in of_topic.items() if at >= 0}


class Told:
    """Asks what a group was told; no admin client does, which may die when its broker does."""

    def __init__(self, kafka: Kafka, group: str) -> None:
        from confluent_kafka import Consumer

        given = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "log_level": 0}
        self._consumer = Consumer({**given, "enable.auto.commit": False})

    def __call__(self) -> dict[int, int]:
        """Return the offset of each partition; nothing when there is no group, or no broker."""
        from confluent_kafka import KafkaException, TopicPartition

        places = [TopicPartition("numbers", number) for number in range(PARTITIONS)]
        try:
            found = self._consumer.committed(places, timeout=5)
        except KafkaException:
            return {}
        return {one.partition: one.offset for one in found if not one.error and one.offset >= 0}


class Onlooker:
    """Looks all the time whether the group stands where the checkpoint does, or behind."""

    def __init__(self, kafka: Kafka, checkpoint: Path) -> None:
        self._told, self._checkpoint = Told(kafka, GROUP), checkpoint
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.looks = 0
        self.ahead: list[tuple[dict[int, int], dict[int, int]]] = []

    def _run(self) -> None:
        while not self._over.wait(0.05):
            group = self._told()
            # What is safe only grows: it is looked at behind what was told.
            safe = self._look()
            self.looks += bool(group)
            if any(at > safe.get(number, 0) for number, at in group.items()):
                self.ahead.append((group, safe))

    def _look(self) -> dict[int, int]:
        while True:
            try:
                return _safe(self._checkpoint)
            except FileNotFoundError:
                continue  # Spark has tidied up meanwhile

    @contextmanager
    def looking(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join(PATIENCE)


def _away(running: Program, port: int, checkpoint: Path, seconds: float) -> None:
    """Hold that a stream waits for its broker: not ready, nothing undone, and not loud."""
    running.wait_for(lambda: _ready(port) == 503, PATIENCE, "for /ready to say 503")
    before, lines = _safe(checkpoint), len(running.lines())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert running.process.poll() is None, running.messages()[-5:]
        time.sleep(0.5)
    # A micro-batch that had all it needs may have ended since.
    running.wait_for(lambda: _ready(port) == 503, PATIENCE, "for /ready to say 503 again")
    after = _safe(checkpoint)
    assert before and all(after[number] >= at for number, at in before.items())
    assert len(running.lines()) - lines < 20, "it floods the log"
    assert any("Waiting for Kafka" in text for text in running.messages())


def test_every_message_comes_out_once_whatever_is_killed(tmp_path: Path) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    out, config, port = tmp_path / "out.txt", tmp_path / "kafka.yaml", free_port()
    checkpoint = tmp_path / "checkpoint"
    with Broker(tmp_path / "broker") as broker:
        kafka = broker.client()
        kafka.create("numbers", PARTITIONS)
        kafka.produce("numbers", Record(b"no json", partition=1))
        given = {"broker": broker.address(), "group": GROUP, "out": out, "port": port}
        config.write_text(CONFIG.format(**given, period="200ms"))
        source, onlooker = Source(kafka), Onlooker(kafka, checkpoint)
        with source.flowing(), onlooker.looking():
            for _ in range(KILLS):
                with program(config, checkpoint) as running:
                    _more(running, out, "for messages before a kill")
                    time.sleep(rng.uniform(0, 2))
                    running.kill()
            with program(config, checkpoint) as running:
                _more(running, out, "for messages after kills")
                with _in_the_group(kafka):
                    _more(running, out, "for messages while another is in the group")
                    running.wait_for(
                        lambda: any("members of its own" in text for text in running.messages()),
                        PATIENCE,
                        "to hear that the group has members",
                    )
                broker.kill()
                _away(running, port, checkpoint, rng.uniform(0, 3))
                broker.start()
                running.wait_for(lambda: _ready(port) == 200, PATIENCE, "for /ready to say 200")
                _more(running, out, "for messages after the broker came back")
                broker.pause()
                _away(running, port, checkpoint, PAUSE)
                broker.resume()
                running.wait_for(lambda: _ready(port) == 200, PATIENCE, "for /ready to say 200")
                _more(running, out, "for messages after the broker went on")
        with program(config, checkpoint) as running:
            running.wait_for(lambda: len(_lines(out)) > source.count, PATIENCE, "for the rest")
            assert running.stop() == 0
        seen = Counter(_lines(out))
        assert not [line for line, times in seen.items() if times > 1][:5], "some came twice"
        assert seen.keys() == {"poison no json", *(f"number {n}" for n in range(source.count))}
        assert onlooker.looks > 10 and not onlooker.ahead[:3]
        assert {lag for _, _, lag in broker.lag(GROUP).values()} == {0}


def test_a_group_that_heard_nothing_before_a_kill_hears_it_from_the_next_start(
    kafka: Kafka, kafka_broker: Broker, tmp_path: Path
) -> None:
    out, config, checkpoint = tmp_path / "out.txt", tmp_path / "a.yaml", tmp_path / "checkpoint"
    given = {"broker": kafka_broker.address(), "group": "late", "out": out, "port": free_port()}
    # It hears of the first micro-batch, then of nothing for a day.
    config.write_text(CONFIG.format(**given, period="24h"))
    kafka.create("numbers")
    kafka.produce("numbers", *(b'{"n":%d}' % n for n in range(100)))

    told = Told(kafka, "late")
    with program(config, checkpoint) as running:
        running.wait_for(lambda: told() == {0: 100}, PATIENCE, "for the group to hear of 100")
        kafka.produce("numbers", *(b'{"n":%d}' % n for n in range(100, 150)))
        running.wait_for(lambda: _safe(checkpoint) == {0: 150}, PATIENCE, "for 50 more")
        running.kill()
    assert told() == {0: 100}
    with program(config, checkpoint) as running:
        running.wait_for(lambda: told() == {0: 150}, PATIENCE, "for the group to hear of 150")
        assert running.stop() == 0
    assert _lines(out) == [f"number {n}" for n in range(150)]


def test_a_topic_that_is_deleted_or_cut_ends_the_stream_with_what_is_missing(
    tmp_path: Path,
) -> None:
    out, config, port = tmp_path / "out.txt", tmp_path / "kafka.yaml", free_port()
    with Broker(tmp_path / "broker") as broker:
        kafka = broker.client()
        kafka.create("numbers", 1)
        kafka.produce("numbers", *(b'{"n":%d}' % n for n in range(10)))
        given = {"broker": broker.address(), "group": GROUP, "out": out, "port": port}
        config.write_text(CONFIG.format(**given, period="200ms"))
        with program(config, tmp_path / "checkpoint") as running:
            running.wait_for(lambda: len(_lines(out)) == 10, PATIENCE, "for messages")
            kafka.delete("numbers")
            assert running.finish(PATIENCE) != 0
        said = [text for text in running.messages() if "fail_on_data_loss" in text]
        assert said, running.messages()[-5:]
        assert "numbers:0 stands at 10" in said[-1]
        assert len(_lines(out)) == 10
