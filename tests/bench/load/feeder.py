"""Sends events to a topic or a pipe at a rate, each with the time at which it was due.

It is an open loop: an event's time is that at which it had to be sent. Where the broker, or this
process, is late, the event is, and what is measured from its time on has that in it.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from tests.bench import traffic
from tests.servers.kafka import Kafka

PARTITIONS = 4
TICK = 0.02
"""Seconds between two bursts; all events of a burst have its time."""

HOUR = 3600.0
CLOSER = "closer"
"""The light of events that only move the clock on."""


class Sink(Protocol):
    """Where events go; it travels to the process that sends them.

    Attributes:
        closers: how many events move the clock on at the end.
    """

    closers: int

    def send(self, values: Sequence[bytes]) -> None:
        """Send events."""

    def finish(self) -> None:
        """Return when all are sent."""


@dataclass(frozen=True)
class Topic:
    """A topic with `PARTITIONS` partitions."""

    bootstrap: str
    name: str
    closers: int = PARTITIONS

    @cached_property
    def _producer(self) -> Any:
        return Kafka(self.bootstrap, {}).producer(
            linger_ms=5, max_in_flight=5, queue_buffering_max_messages=4_000_000
        )

    def send(self, values: Sequence[bytes]) -> None:
        """Send events, in turn to all partitions."""
        for partition in range(PARTITIONS):
            messages = [{"value": value} for value in values[partition::PARTITIONS]]
            sent = self._producer.produce_batch(self.name, messages, partition=partition)
            if sent != len(messages):
                raise RuntimeError("the broker does not take what is sent to it")
            self._producer.poll(0)

    def finish(self) -> None:
        """Wait for the broker."""
        if left := self._producer.flush(60):
            raise RuntimeError(f"the broker has not taken {left:,} events")


@dataclass(frozen=True)
class Pipe:
    """A named pipe, from which a program reads lines."""

    path: Path
    closers: int = 1

    @cached_property
    def _file(self) -> BinaryIO:
        return self.path.open("wb", buffering=0)

    def send(self, values: Sequence[bytes]) -> None:
        """Write events as lines."""
        left = memoryview(b"".join(b"%b\n" % value for value in values))
        while left:
            left = left[self._file.write(left) :]

    def finish(self) -> None:
        """Let it end."""
        self._file.close()


@dataclass(frozen=True)
class Feeder:
    """What sends, in a process of its own.

    Attributes:
        rate: events a second; it may be changed.
        sent: events so far.
        late: the most seconds by which a burst was sent after its time, since it was last set.
    """

    rate: Any
    sent: Any
    late: Any


@contextmanager
def feeding(sink: Sink, seed: int) -> Iterator[Feeder]:
    """Send until the block ends, at first nothing; then move the clock on.

    Args:
        sink: where to.
        seed: of the random choices.
    """
    spawn = multiprocessing.get_context("spawn")
    feeder = Feeder(spawn.Value("d", 0.0), spawn.Value("q", 0), spawn.Value("d", 0.0))
    over = spawn.Event()
    arguments = (sink, seed, feeder.rate, feeder.sent, feeder.late, over)
    process = spawn.Process(target=_feed, args=arguments, daemon=True)
    process.start()
    try:
        yield feeder
    finally:
        over.set()
        process.join(60)
        if process.is_alive():
            process.kill()
    if process.exitcode:
        raise RuntimeError(f"what sends the events ended with exit code {process.exitcode}")


def _feed(sink: Sink, seed: int, rate: Any, sent: Any, late: Any, over: Any) -> None:
    sink.send([])
    heads, tails = traffic.halves(traffic.LIGHTS)
    rng = random.Random(seed)
    due, owed = time.time(), 0.0
    while not over.is_set():
        due += TICK
        time.sleep(max(0.0, due - time.time()))
        owed += rate.value * TICK
        count = int(owed)
        owed -= count
        if not count:
            continue
        at = _rfc3339(due)
        chosen = zip(rng.choices(heads, k=count), rng.choices(tails, k=count), strict=True)
        sink.send([b"%b%b%b" % (head, at, tail[:-1]) for head, tail in chosen])
        sent.value += count
        late.value = max(late.value, time.time() - due)
    sink.send([_closer(due + HOUR)] * sink.closers)
    sink.finish()


def _rfc3339(at: float) -> bytes:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3].encode() + b"Z"


def _closer(at: float) -> bytes:
    head = b'{"traffic_light":"%b","created_at":"' % CLOSER.encode()
    return head + _rfc3339(at) + b'","registration_plate":"","passengers":0}'
