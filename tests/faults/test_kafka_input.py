"""A stream that reads Kafka while driver and broker are killed, and others join its group.

What comes out is a file, which has every message once whatever happens.
"""

from __future__ import annotations

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
from tests.servers.kafka.jars import needs_connector

from .program import Program, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# Ten are for a run by hand: STREAMER_KILLS=10 pytest tests/faults/test_kafka_input.py
KILLS = int(os.environ.get("STREAMER_KILLS", "2"))
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
    commit_period: 200ms
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


def _join_the_group(kafka: Kafka) -> None:
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
    consumer.close()


def test_every_message_comes_out_once_whatever_is_killed(tmp_path: Path) -> None:
    needs_connector()
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    out, config, port = tmp_path / "out.txt", tmp_path / "kafka.yaml", free_port()
    with Broker(tmp_path / "broker") as broker:
        kafka = broker.client()
        kafka.create("numbers", PARTITIONS)
        kafka.produce("numbers", Record(b"no json", partition=1))
        config.write_text(CONFIG.format(broker=broker.address(), group=GROUP, out=out, port=port))
        source = Source(kafka)
        with source.flowing():
            for _ in range(KILLS):
                with program(config, tmp_path / "checkpoint") as running:
                    _more(running, out, "for messages before a kill")
                    time.sleep(rng.uniform(0, 2))
                    running.kill()
            with program(config, tmp_path / "checkpoint") as running:
                _more(running, out, "for messages after kills")
                _join_the_group(kafka)
                _more(running, out, "for messages while another is in the group")
                broker.kill()
                running.wait_for(lambda: _ready(port) == 503, PATIENCE, "for /ready to say 503")
                time.sleep(rng.uniform(0, 3))
                broker.start()
                running.wait_for(lambda: _ready(port) == 200, PATIENCE, "for /ready to say 200")
                _more(running, out, "for messages after the broker came back")
        with program(config, tmp_path / "checkpoint") as running:
            running.wait_for(lambda: len(_lines(out)) > source.count, PATIENCE, "for the rest")
            assert running.stop() == 0
        seen = Counter(_lines(out))
        assert not [line for line, times in seen.items() if times > 1][:5], "some came twice"
        assert seen.keys() == {"poison no json", *(f"number {n}" for n in range(source.count))}
        assert {lag for _, _, lag in broker.lag(GROUP).values()} == {0}


def test_a_topic_that_is_deleted_or_cut_ends_the_stream_with_what_is_missing(
    tmp_path: Path,
) -> None:
    needs_connector()
    out, config, port = tmp_path / "out.txt", tmp_path / "kafka.yaml", free_port()
    with Broker(tmp_path / "broker") as broker:
        kafka = broker.client()
        kafka.create("numbers", 1)
        kafka.produce("numbers", *(b'{"n":%d}' % n for n in range(10)))
        config.write_text(CONFIG.format(broker=broker.address(), group=GROUP, out=out, port=port))
        with program(config, tmp_path / "checkpoint") as running:
            running.wait_for(lambda: len(_lines(out)) == 10, PATIENCE, "for messages")
            kafka.delete("numbers")
            assert running.finish(PATIENCE) != 0
        said = [text for text in running.messages() if "fail_on_data_loss" in text]
        assert said, running.messages()[-5:]
        assert "numbers:0 stands at 10" in said[-1]
        assert len(_lines(out)) == 10
