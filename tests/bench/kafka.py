"""Reading Kafka against reading files: the same windows fill with the same events.

Their times are far ahead, so that no window closes: what is measured is the way of a message from
its source into a folded window. The broker runs on the same machine, and takes its part of it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations
from pathlib import Path
from typing import Any

from tests.bench import jobs, report, traffic
from tests.bench.process_tree import Tree
from tests.bench.product import Product, product
from tests.bench.speed import LEFT_OUT, Speed
from tests.servers.kafka import Broker, Kafka

CODECS = "none", "lz4", "zstd", "snappy", "gzip"
AHEAD = 7 * 24 * 3600
GROUP = "bench"
MOST_BYTES = 2000 << 20
"""Of the events of one case, as files have them."""
LEAST, MOST_CPU = 0.85, 1.3
"""Of the throughput of files, and of their CPU for an event."""

INPUT = """
input:
  kafka:
    addresses: ["{broker}"]
    topics: [{topic}]
    consumer_group: {group}
    start_from_oldest: true
    max_messages_per_trigger: {most}
"""
MOST_MESSAGES, BATCH_BYTES = 1_000_000, 256 << 20
"""Of a micro-batch, as a stream has them that knows how large messages are: smaller ones would make
what Spark takes for each of them most of what is measured."""


@dataclass(frozen=True)
class Cases:
    """The cases: each number of partitions with each size and each compression.

    Attributes:
        partitions: of a topic.
        sizes: bytes of an event; what is less than an event has is no padding.
        codecs: how producers compress.
    """

    partitions: tuple[int, ...] = (4,)
    sizes: tuple[int, ...] = (0,)
    codecs: tuple[str, ...] = ("none",)


def kafka(work: Path, events: int, pace: float, master: str, cases: Cases) -> None:
    """Read the same events from files and from topics."""
    report.heading(f"kafka: tumbling windows of 10 s fill from topics, against files, {master}")
    with Broker(work / "broker") as broker:
        for size in cases.sizes:
            count = min(events, MOST_BYTES // max(size, 1))
            paths = _write(work / "files", count, pace, size)
            of_files = jobs.windowed(
                work / "files" / "*.jsonl", work / "out.jsonl", "10s", master=master
            )
            with product(of_files, work / "of-files") as run:
                run.wait_for_messages(count, 120 + count / 2_000)
                files = _filling(run)
            tell(f"files, {size or 115} bytes", files)
            for partitions, codec in combinations(cases.partitions, cases.codecs):
                topic = f"lights-{partitions}-{size}-{codec}"
                produce(broker.client(), topic, partitions, codec, _lines(paths))
                most = min(MOST_MESSAGES, BATCH_BYTES // max(size, 1))
                text = INPUT.format(broker=broker.address(), topic=topic, group=GROUP, most=most)
                config = of_files.replace(jobs.FILES.format(files=work / "files" / "*.jsonl"), text)
                what = f"{partitions} partitions, {size or 115} bytes, {codec}"
                _measure(work / topic, config, broker, count, (what, files))
                broker.client().delete(topic)
            shutil.rmtree(work / "files")


def _measure(
    work: Path, config: str, broker: Broker, events: int, against: tuple[str, Speed]
) -> None:
    what, files = against
    tree = Tree(broker.pid, 0.2)
    with product(config, work) as run:
        run.wait_for_messages(events, 120 + events / 2_000)
        found = _filling(run)
        first, last = _span(run)
        most = max(sample.memory for sample in run.tree.between(first, last))
    brokers = (tree.cpu_at(last) - tree.cpu_at(first)) / found.events * 1e6
    tree.stop()
    tell(what, found)
    report.figure(f"{what}: CPU of the broker for a million events", brokers, "s")
    report.figure(f"{what}: memory of all processes", most / (1 << 20), "MiB")
    report.figure(f"{what}: kafka / files", found.rate / files.rate, "", least=LEAST)
    more = found.cpu_per_million / files.cpu_per_million
    report.figure(f"{what}: CPU of kafka / files", more, "", most=MOST_CPU)
    shutil.rmtree(work)


def _write(directory: Path, events: int, pace: float, size: int) -> list[Path]:
    paths = traffic.write(directory, events, 10, time.time() // 10 * 10 + AHEAD, pace)
    for path in paths if size else ():
        lines = path.read_bytes().splitlines()
        with path.open("wb") as out:
            for line in lines:
                pad = b"x" * max(size - len(line) - 9, 0)
                out.write(line[:-1] + b',"pad":"' + pad + b'"}\n')
    return paths


def _lines(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                yield line.rstrip()


def tell(what: str, speed: Speed) -> None:
    """Print the figures of a case."""
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


def produce(client: Kafka, topic: str, partitions: int, codec: str, lines: Iterator[bytes]) -> None:
    """Write events into the partitions of a new topic in turns."""
    client.create(topic, partitions)
    producer: Any = client.producer(
        linger_ms=50, batch_size=500_000, max_in_flight=5, compression_type=codec
    )
    number = 0
    for number, line in enumerate(lines, 1):
        while True:
            try:
                producer.produce(topic, line, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(120):
        raise RuntimeError(f"the broker has not taken {left:,} of {number:,} events")
