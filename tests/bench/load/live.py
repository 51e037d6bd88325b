"""A stream between a topic and a pipe, and when what was due came out of it.

The stream has some of the machine's cores for itself. The broker, what sends the events and what
reads the output share the others: they are no part of what is measured.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from tests.bench.load.feeder import PARTITIONS, Feeder, Topic, feeding
from tests.bench.product import Product, product
from tests.servers.kafka import Broker

TOPIC = "lights"
MIB = 2**20
_LATE = 1e-4

INPUT = """
input:
  kafka:
    addresses: ["{broker}"]
    topics: [{topic}]
    consumer_group: load
    start_from_oldest: true
output:
  stdout: {{}}
spark: {{master: "local[{cores}]", conf: {conf}}}
"""

WINDOWS = """
buffer:
  tumbling_window:
    timestamp_mapping: root = this.created_at
    key_mapping: root = this.traffic_light
    size: 1s
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {
            "end": meta("window_end_timestamp"),
            "events": batch_size(),
            "light": this.traffic_light,
            "passengers": json("passengers").from_all().sum(),
          }
        } else { deleted() }
"""

PASSING = """
pipeline:
  processors:
    - mapping: |
        root.at = this.created_at
        root.passengers = this.passengers
"""

NAMES = {WINDOWS: "windows of a second", PASSING: "a mapping"}
_LINES = {
    WINDOWS: re.compile(rb'"end":"([^"]+)","events":(\d+)'),
    PASSING: re.compile(rb'"at":"([^"]+)",("passengers")'),
}


@dataclass(frozen=True)
class Came:
    """Lines that came at once.

    Attributes:
        at: when, Unix time.
        due: when, Unix time: the window's end, or the event's time.
        lines: how many.
        events: in their windows.
    """

    at: float
    due: float
    lines: int
    events: int


@dataclass
class Reader:
    """Reads what a program prints, and remembers when."""

    fd: int
    pattern: re.Pattern[bytes]
    came: list[Came] = field(default_factory=list)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def newest(self) -> float:
        """Return the greatest time that has come out; 0 before the first."""
        return max((one.due for one in self.came[-200:]), default=0.0)

    def _read(self) -> None:
        rest = b""
        while block := os.read(self.fd, 1 << 20):
            at = time.time()
            whole, newline, rest = (rest + block).rpartition(b"\n")
            if not newline:
                continue
            lines, events = Counter[bytes](), Counter[bytes]()
            for due, count in self.pattern.findall(whole):
                lines[due] += 1
                events[due] += int(count) if count.isdigit() else 1
            self.came += [Came(at, _unix(due), lines[due], events[due]) for due in lines]


@dataclass(frozen=True)
class Live:
    """What runs.

    Attributes:
        stream: the program.
        feeder: what sends.
        reader: what reads its output.
    """

    stream: Product
    feeder: Feeder
    reader: Reader

    def behind(self) -> float:
        """Return the seconds by which the newest output is behind the clock."""
        return time.time() - self.reader.newest()

    def check(self) -> None:
        """See that it runs.

        Raises:
            RuntimeError: it has ended.
        """
        if self.stream.process.poll() is not None:
            raise RuntimeError(f"it ended: {self.stream.troubles}{self.stream.course()}")

    def wait_until_even(self, seconds: float) -> None:
        """Wait until all that was sent is out, or was dropped as late.

        Raises:
            RuntimeError: it is not after so long.
        """
        until = time.time() + seconds
        while self.out() + self.late() < self.feeder.sent.value:
            self.check()
            if time.time() > until:
                raise RuntimeError(f"{self.account()}{self.stream.course()}")
            time.sleep(0.2)

    def out(self) -> int:
        """Return how many events are in what came out, without those that only move the clock."""
        now = time.time()
        return sum(one.events for one in self.reader.came if one.due < now)

    def late(self) -> int:
        """Return how many events were dropped as late.

        Partitions have no order among them: where the broker takes the events of one a moment
        after those of the others, and a micro-batch ends in this moment, its window may be over.
        """
        return self.stream.delivered[-1].dropped if self.stream.delivered else 0

    def check_account(self, late_share: float = _LATE) -> None:
        """See that each event came out, once, or was late, when nothing is sent any more.

        Args:
            late_share: how many events may be late, of all.

        Raises:
            RuntimeError: an event was lost or counted twice, or too many were late.
        """
        self.wait_until_even(120)
        time.sleep(3)
        sent, late = self.feeder.sent.value, self.late()
        if self.out() + late != sent or late > sent * late_share:
            raise RuntimeError(self.account())

    def account(self) -> str:
        """Say what has become of all that was sent."""
        sent = self.feeder.sent.value
        return f"of {sent:,} events {self.out():,} came out and {self.late():,} were late"


@contextmanager
def live(
    kind: str, work: Path, seed: int, conf: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Live]:
    """Run a stream that waits for events; at the end see that each came out, once, or was late.

    Args:
        kind: `WINDOWS` or `PASSING`.
        work: a directory that does not exist yet.
        seed: of the events.
        conf: settings of Spark.

    Raises:
        RuntimeError: an event was lost or counted twice, or more than one in 10,000 was late.
    """
    settings = {
        "log.retention.check.interval.ms": "10000",
        "log.segment.delete.delay.ms": "1000",
    }
    with _apart() as ours, Broker(work / "broker", settings) as broker:
        kafka = broker.client()
        kafka.create(TOPIC, PARTITIONS, retention_bytes=500 * MIB, segment_bytes=50 * MIB)
        at, spark = broker.address(), json.dumps(dict(conf))
        text = INPUT.format(broker=at, topic=TOPIC, cores=len(ours), conf=spark) + kind
        with product(text, work / "run", stdout=subprocess.PIPE) as stream:
            os.sched_setaffinity(stream.process.pid, ours)
            assert stream.process.stdout is not None
            reader = Reader(stream.process.stdout.fileno(), _LINES[kind])
            with feeding(Topic(kafka.bootstrap, TOPIC), seed) as feeder:
                running = Live(stream, feeder, reader)
                warm_up(running)
                yield running
                feeder.rate.value = 0.0
            running.check_account()


def quantile(came: Sequence[Came], q: float) -> float:
    """Return seconds from when a line was due to when it came: the share `q` of lines took less."""
    took = sorted((one.at - one.due, one.lines) for one in came)
    wanted = q * sum(lines for _, lines in took)
    for seconds, lines in took:
        wanted -= lines
        if wanted <= 0:
            return seconds
    raise ValueError("nothing came")


@contextmanager
def _apart() -> Iterator[set[int]]:
    """Keep what this process starts on half of the cores; give the others, for the stream."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    if not half:
        raise RuntimeError("a stream and what feeds it need a core each, and there is one")
    os.sched_setaffinity(0, cores[half:])
    try:
        yield set(cores[:half])
    finally:
        os.sched_setaffinity(0, cores)


def warm_up(running: Live, behind: float = 10.0) -> None:
    """Let some events through, so that Java and Python have seen each part of the stream.

    Args:
        running: the stream.
        behind: seconds by which its newest output may be behind the clock then.
    """
    running.stream.wait_for_start(120)
    running.feeder.rate.value = 1_000.0
    until = time.time() + 120
    while not running.reader.came or running.behind() > behind:
        running.check()
        if time.time() > until:
            raise RuntimeError(f"nothing comes out{running.stream.course()}")
        time.sleep(0.2)


@lru_cache(maxsize=4096)
def _unix(text: bytes) -> float:
    return datetime.fromisoformat(text.decode()).timestamp()
