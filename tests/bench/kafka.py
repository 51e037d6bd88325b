"""Reading Kafka against reading files: the same windows fill with the same events.

Their times are far ahead, so that no window closes: what is measured is the way of a message from
its source into a folded window. The broker runs on the same machine, and takes its part of it.
Messages are not compressed, which is the default of producers.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from tests.bench import jobs, report, traffic
from tests.bench.process_tree import Tree
from tests.bench.product import Product, product
from tests.bench.speed import LEFT_OUT, Speed
from tests.servers.kafka import Broker, Kafka

PARTITIONS = 4
READERS = {"workers": 0.85, "jvm": 0.55}
"""Who reads Kafka, with the least part of the rate of files that each is to reach."""
AHEAD = 7 * 24 * 3600
TOPIC, GROUP = "lights", "bench"

INPUT = """
input:
  kafka:
    addresses: ["{broker}"]
    topics: [{topic}]
    consumer_group: {group}
    start_from_oldest: true
"""


def kafka(work: Path, events: int, pace: float, master: str) -> None:
    """Read the same events from files and from a topic of four partitions."""
    report.heading(f"kafka: tumbling windows of 10 s fill from {PARTITIONS} partitions, {master}")
    paths = traffic.write(work / "files", events, 10, time.time() // 10 * 10 + AHEAD, pace)
    pattern, out = work / "files" / "*.jsonl", work / "out.jsonl"
    of_files = jobs.windowed(pattern, out, "10s", master=master)
    with product(of_files, work / "of-files") as run:
        run.wait_for_messages(events, 60 + events / 10_000)
        files = _filling(run)
    _tell("files", files)
    with Broker(work / "broker") as broker:
        _produce(broker.client(), paths)
        text = INPUT.format(broker=broker.address(), topic=TOPIC, group=GROUP)
        of_kafka = of_files.replace(jobs.FILES.format(files=pattern), text)
        for reader, least in READERS.items():
            config = of_kafka.replace("spark:\n", f"spark:\n  kafka: {{reader: {reader}}}\n")
            tree = Tree(broker.pid, 0.2)
            with product(config, work / f"of-{reader}") as run:
                run.wait_for_messages(events, 60 + events / 10_000)
                found = _filling(run)
                first, last = _span(run)
            brokers = (tree.cpu_at(last) - tree.cpu_at(first)) / found.events * 1e6
            tree.stop()
            _tell(f"kafka by {reader}", found)
            report.figure("CPU of the broker for a million events", brokers, "s")
            report.figure("kafka / files", found.rate / files.rate, "", least=least)
            more = found.cpu_per_million / files.cpu_per_million
            report.figure("CPU of kafka / files", more, "")
    shutil.rmtree(work / "files")


def _tell(what: str, speed: Speed) -> None:
    report.figure(f"events a second from {what}", speed.rate, "events/s")
    report.figure(f"CPU for a million events from {what}", speed.cpu_per_million, "s")


def _span(run: Product) -> tuple[float, float]:
    filled = run.filled()
    if len(filled) <= LEFT_OUT:
        raise RuntimeError(
            f"only {len(filled)} micro-batches brought events, of which {LEFT_OUT} are not "
            "measured: use more --events"
        )
    return filled[LEFT_OUT - 1].at, filled[-1].at


def _filling(run: Product) -> Speed:
    """Measure from the first micro-batches, which are left out, to the last that brought events."""
    first, last = _span(run)
    filled = run.filled()
    return Speed(
        filled[-1].messages - filled[LEFT_OUT - 1].messages,
        last - first,
        run.tree.cpu_at(last) - run.tree.cpu_at(first),
        len(filled) - LEFT_OUT,
    )


def _produce(client: Kafka, paths: list[Path]) -> None:
    client.create(TOPIC, PARTITIONS)
    producer: Any = client.producer(linger_ms=50, batch_size=500_000, max_in_flight=5)
    number = 0
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                while True:
                    try:
                        producer.produce(TOPIC, line.rstrip(), partition=number % PARTITIONS)
                        break
                    except BufferError:
                        producer.poll(0.05)
                number += 1
        producer.poll(0)
    if left := producer.flush(120):
        raise RuntimeError(f"the broker has not taken {left:,} of {number:,} events")
