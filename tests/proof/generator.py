"""Events with ids, made from a seed, and where in Kafka each of them went.

Event time runs ten times as fast as the clock on the wall, so that windows of seconds close all
the time, unless it is to follow that clock. Some events are out of order, some far too late, and
some lie on a bound of a window or a nanosecond beside it.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

SECOND = 10**9
BEGIN = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND
SIZE = 5 * SECOND
"""Bounds lie at its multiples."""
GRACE = 2 * SECOND
"""For how long after its end a window takes what is late."""
HUGE = 10**7
"""Bytes of the largest poison."""
_HUGE_EVERY = 4000
"""Of so many events of a poisoned topic one is huge: 2.5 MB a second."""
_PATIENCE = 240.0


@dataclass(frozen=True)
class Event:
    """What was sent.

    Attributes:
        id: its number.
        raw: the message.
        at: its event time in Unix ns; None when it has none that can be used.
        key: of its window.
    """

    id: int
    raw: bytes
    at: int | None
    key: str


@dataclass(frozen=True)
class Shape:
    """How the events are.

    Attributes:
        partitions: of the topic.
        silent: partitions that get nothing.
        disorder: by how much an event may be behind, ns.
        late: the share that is 10 s to 60 s behind.
        poison: the share that is poison.
        keys: how many there are.
        rate: events a second.
        live: event time is that of the clock on the wall.
    """

    partitions: int = 3
    silent: frozenset[int] = frozenset()
    disorder: int = 3 * SECOND
    late: float = 0.02
    poison: float = 0.0
    keys: int = 5
    rate: int = 1000
    live: bool = False

    @property
    def step(self) -> int:
        """Event time from one event to the next, ns."""
        return SECOND // self.rate if self.live else 10 * SECOND // self.rate


def rfc3339(at: int) -> str:
    """Write Unix ns with nine decimals."""
    whole, rest = divmod(at, SECOND)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def event(number: int, at: int, key: str) -> Event:
    """Make an event with a usable time."""
    raw = json.dumps({"id": number, "at": rfc3339(at), "key": key}).encode()
    return Event(number, raw, at, key)


def _poison(number: int, rng: random.Random) -> Event:
    """Make a message whose time cannot be used, or hardly; each is unlike all others."""
    key = f"poison-{number}"
    bad: list[bytes] = [
        b'{"id": %d, "at": "2026-01-01T00:0' % number,
        b'{"id": %d, "at": "\xff\xfe\xc3\x28"}' % number,
        b"\xff\xfe %d" % number,
        *(
            json.dumps({"id": number, "at": at, "key": key}).encode()
            for at in ("NaN", None, "2026-01-01", "9999-12-31T23:59:59Z", [], 1e300, "")
        ),
        b'{"id": %d, "at": NaN}' % number,
        b'{"id": %d, "at": -1e400}' % number,
    ]
    return Event(number, rng.choice(bad), None, key)


def _huge(number: int, at: int, *, whole: bool) -> Event:
    """Make a message of 10 MB: an event like others, or one whose end was cut off."""
    text = json.dumps(json.loads(event(number, at, "big").raw) | {"ballast": "x" * HUGE})
    if whole:
        return Event(number, text.encode(), at, "big")
    return Event(number, text[:HUGE].encode(), None, "big")


def events(seed: int, shape: Shape, begin: int = BEGIN) -> Iterator[tuple[int, Event]]:
    """Make events without end, each with its partition.

    Args:
        seed: decides everything.
        shape: of the events.
        begin: the event time of the first, Unix ns.
    """
    rng = random.Random(seed)
    open_ones = [one for one in range(shape.partitions) if one not in shape.silent]
    number = 0
    while True:
        now = begin + number * shape.step
        at = now - rng.randrange(shape.disorder + 1)
        draw = rng.random()
        if draw < shape.late:
            at = now - rng.randrange(10 * SECOND, 60 * SECOND)
        elif draw < shape.late + 0.05:
            at += rng.choice((-1, 0, 1)) - at % SIZE
        elif draw < shape.late + 0.051:
            # Ahead of the others, so that the clock stands at a bound, or GRACE after one, a while.
            at += rng.choice((0, -1, GRACE, GRACE - 1)) - at % SIZE + SIZE
        made = event(number, at, f"key-{rng.randrange(shape.keys)}")
        if shape.poison and rng.random() < shape.poison:
            made = _poison(number, rng)
        if shape.poison and number % _HUGE_EVERY == _HUGE_EVERY // 2:
            made = _huge(number, at, whole=number // _HUGE_EVERY % 2 == 0)
        yield rng.choice(open_ones), made
        number += 1


class Source:
    """Sends events, and knows by what the broker says where each one lies.

    Attributes:
        sent: the events by partition and offset.
        silent: while it is set, nothing is sent.
    """

    def __init__(self, kafka: Any, topic: str, seed: int, shape: Shape) -> None:
        """Prepare; nothing is sent before `flowing`.

        Args:
            kafka: a client of `tests.servers.kafka`.
            topic: it has the shape's partitions.
            seed: decides everything.
            shape: of the events.
        """
        self.topic, self.sent = topic, dict[tuple[int, int], Event]()
        self._seed, self._shape = seed, shape
        # Waits for a broker that is away, and sends nothing twice.
        self._producer = kafka.producer(
            enable_idempotence=True, message_timeout_ms=300_000, message_max_bytes=2 * HUGE
        )
        self._failed: list[str] = []
        self._over, self.silent = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._count = 0

    @property
    def count(self) -> int:
        """How many were sent."""
        return self._count

    def ends(self) -> dict[int, int]:
        """Return where each partition ends that has something."""
        found: dict[int, int] = {}
        for partition, offset in list(self.sent):
            found[partition] = max(found.get(partition, 0), offset + 1)
        return found

    def send(self, partition: int, one: Event) -> None:
        """Send one; `flush` waits for it."""

        def told(error: Any, message: Any) -> None:
            if error is not None:
                self._failed.append(str(error))
            else:
                self.sent[partition, message.offset()] = one

        self._producer.produce(self.topic, value=one.raw, partition=partition, on_delivery=told)
        self._producer.poll(0)
        self._count += 1

    def flush(self) -> None:
        """Wait until the broker has all of them."""
        left = self._producer.flush(_PATIENCE)
        if left or self._failed or len(self.sent) != self._count:
            raise RuntimeError(f"the broker did not take all events: {left}, {self._failed[:3]}")

    def close_windows(self) -> None:
        """Send an event that is an hour ahead: all windows but its own are over."""
        self.send(
            next(n for n in range(self._shape.partitions) if n not in self._shape.silent),
            event(10**9 + self._count, BEGIN + 3600 * SECOND + self._count * SECOND, "closer"),
        )
        self.flush()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Send at the rate until the block ends."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join(_PATIENCE)
            self.flush()

    def _run(self) -> None:
        began, rate = time.monotonic(), self._shape.rate
        made = events(self._seed, self._shape, time.time_ns() if self._shape.live else BEGIN)
        while not self._over.wait(0.05):
            if self.silent.is_set():
                continue
            due = int((time.monotonic() - began) * rate)
            # After a broker's absence, what is due comes in one go, but no more than this.
            for _ in range(min(due - self._count, 5 * rate)):
                self.send(*next(made))
