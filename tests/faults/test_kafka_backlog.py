"""A backlog of Kafka is worked off in memory that has nothing to do with its length."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from tests.bench.process_tree import Sample, Tree
from tests.servers.kafka import Broker, Kafka

from .program import Program, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

# Ten million are for a run by hand:
#   STREAMER_BACKLOG=10000000 pytest -s tests/faults/test_kafka_backlog.py
BACKLOG = int(os.environ.get("STREAMER_BACKLOG", "400000"))
SIZE = max(100, 800_000_000 // BACKLOG)
"""Bytes of a message: few messages are large, so that the backlog is far more than the heap."""
HEAP = 512
"""MiB of the JVM's heap, of which Spark wants 450; the backlog has more."""
MICRO_BATCHES = 20
"""At least so many, so that the first third of them tells what one takes."""
PARTITIONS = 4
KINDS = ("driver", "java", "python")
MOST = BACKLOG * SIZE // 4
"""Bytes by which memory may grow after the first third: what is left is 2.7 times as much."""

CONFIG = """
http: {{enabled: false}}
input:
  kafka:
    addresses: ["{broker}"]
    topics: [backlog]
    consumer_group: readers
    start_from_oldest: true
    checkpoint_limit: {bound}
pipeline:
  processors:
    - mapping: 'root = content().slice(0, 10)'
output: {{file: {{path: "{out}"}}}}
spark:
  master: "local[2]"
  conf:
    spark.driver.memory: {heap}m
    # All of the heap from the beginning: what grows is something else.
    spark.driver.extraJavaOptions: "-Xms{heap}m -XX:+AlwaysPreTouch"
"""


def _produce(kafka: Kafka) -> None:
    """Fill the topic with numbers of ten digits, each with what makes it `SIZE` bytes long."""
    rest = b"." * (SIZE - 10)
    producer = kafka.producer(linger_ms=50, batch_size=500_000, max_in_flight=5)
    for number in range(BACKLOG):
        while True:
            try:
                producer.produce("backlog", b"%010d" % number + rest, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(600) == 0


def _numbers(out: Path) -> int:
    return out.stat().st_size // 11 if out.exists() else 0


def _worked_off(running: Program, out: Path) -> tuple[Tree, float]:
    """Watch memory until all is written; return it, and when a third of the backlog was."""
    tree = Tree(running.process.pid, 0.2)
    patience = 600 + BACKLOG / 2_000
    running.wait_for(lambda: _numbers(out) >= BACKLOG / 3, patience, "for a third")
    third = tree.samples[-1].at
    running.wait_for(lambda: _numbers(out) >= BACKLOG, patience, "for all messages")
    tree.stop()
    return tree, third


def test_a_backlog_is_worked_off_in_bounded_memory(tmp_path: Path) -> None:
    out, config = tmp_path / "out.txt", tmp_path / "config.yaml"
    with Broker(tmp_path / "broker") as broker:
        kafka = broker.client()
        kafka.create("backlog", partitions=PARTITIONS)
        _produce(kafka)
        bound = BACKLOG // MICRO_BATCHES
        config.write_text(CONFIG.format(broker=broker.address(), out=out, heap=HEAP, bound=bound))
        with program(config, tmp_path / "run" / "checkpoint") as running:
            tree, third = _worked_off(running, out)
            assert running.stop() == 0
        assert sum(lag for _, _, lag in broker.lag("readers").values()) == 0
    found = np.sort(np.loadtxt(out, dtype=np.int64))
    assert np.array_equal(found, np.arange(BACKLOG)), "messages are lost, or there twice"
    first, later = _most(tree.between(0, third)), _most(tree.between(third, time.time()))
    course = "; ".join(map(_told, tree.samples[:: len(tree.samples) // 15 + 1]))
    figures = f"at most {first} MiB until a third, {later} MiB later; in all: {course}"
    print(f"{BACKLOG:,} messages of {SIZE} bytes: {figures}")
    assert later - first < MOST >> 20, figures


def _most(samples: list[Sample]) -> int:
    """The most memory, MiB, that the program had for three samples.

    What the JVM forks has its pages for a moment, before it is another program.
    """
    sizes = [sum(sample.rss[kind] for kind in KINDS) >> 20 for sample in samples]
    return max(map(min, sizes, sizes[1:], sizes[2:]))


def _told(sample: Sample) -> str:
    return " ".join(f"{kind} {sample.rss[kind] >> 20}" for kind in KINDS)
