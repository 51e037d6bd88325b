"""Sends events to a topic at a rate, whatever becomes of them, each with the time it was due.

It is an open loop: an event's time is that at which it had to be sent. Where the broker, or this
process, is late, the event is, and what is measured from its time on has that in it.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.bench import traffic
from tests.servers.kafka import Kafka

PARTITIONS = 4
TICK = 0.02
"""Seconds between two bursts; all events of a burst have its time."""

HOUR = 3600.0
CLOSER = "closer"
"""The light of events that only move the clock on."""


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
def feeding(kafka: Kafka, topic: str, seed: int) -> Iterator[Feeder]:
    """Send until the block ends, at first nothing; then move the clock of all partitions on.

    Args:
        kafka: where to.
        topic: it has `PARTITIONS` partitions.
        seed: of the random choices.
    """
    spawn = multiprocessing.get_context("spawn")
    feeder = Feeder(spawn.Value("d", 0.0), spawn.Value("q", 0), spawn.Value("d", 0.0))
    over = spawn.Event()
    arguments = (kafka.bootstrap, topic, seed, feeder.rate, feeder.sent, feeder.late, over)
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


def _feed(
    bootstrap: str, topic: str, seed: int, rate: Any, sent: Any, late: Any, over: Any
) -> None:
    producer: Any = Kafka(bootstrap, {}).producer(
        linger_ms=5, max_in_flight=5, queue_buffering_max_messages=4_000_000
    )
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
        _send(producer, topic, [b"%b%b%b" % (head, at, tail[:-1]) for head, tail in chosen])
        sent.value += count
        late.value = max(late.value, time.time() - due)
    _send(producer, topic, [_closer(due + HOUR)] * PARTITIONS)
    if left := producer.flush(60):
        raise RuntimeError(f"the broker has not taken {left:,} events")


def _send(producer: Any, topic: str, values: list[bytes]) -> None:
    for partition in range(PARTITIONS):
        messages = [{"value": value} for value in values[partition::PARTITIONS]]
        if producer.produce_batch(topic, messages, partition=partition) != len(messages):
            raise RuntimeError("the broker does not take what is sent to it")
        producer.poll(0)


def _rfc3339(at: float) -> bytes:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3].encode() + b"Z"


def _closer(at: float) -> bytes:
    head = b'{"traffic_light":"%b","created_at":"' % CLOSER.encode()
    return head + _rfc3339(at) + b'","registration_plate":"","passengers":0}'
