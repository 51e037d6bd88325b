"""The gate before the micro-batches of a stream that reads Kafka.

Spark would start one whenever Kafka has a message more. It asks our source first what there is, so
our source answers when a micro-batch is worth it, and what Kafka has by then is in it. A broker
that does not answer is waited for here, where nothing has begun that could fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streamer.engine.beside import KafkaChild
from streamer.engine.signals import Signals
from streamer.errors import StreamerError
from streamer.kafka.reading import DataLostError, Offsets

LOOK: Final = 0.25
"""Seconds between two looks that find nothing worth a micro-batch."""

_LONGEST: Final = 5.0


class StoppedError(Exception):
    """The stream is to stop: raised in place of an offset, so that no micro-batch begins."""


class Waiting(NamedTuple):
    """What waits in all Kafka inputs.

    Attributes:
        messages: how many.
        more: more than one micro-batch takes.
        ends: the ends of all partitions, for each input.
    """

    messages: int
    more: bool
    ends: list[Offsets]


class Gate:
    """Waits, in the process that plans micro-batches."""

    def __init__(
        self,
        children: Sequence[KafkaChild],
        signals: Signals,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], int] = time.time_ns,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the inputs.

        Args:
            children: the Kafka inputs.
            signals: how the driver is talked to.
            sleep: waits, s.
            clock: the wall clock, ns: windows are due by it, and it may be set.
            now: a clock that never runs backwards, s.
        """
        self._children = children
        self._signals = signals
        self._sleep = sleep
        self._clock = clock
        self._now = now
        self._failures = 0

    def waiting(self) -> Waiting:
        """Return what waits, when all brokers answer.

        Raises:
            StoppedError: the stream is to stop.
            DataLostError: something that is to be read is gone.
        """
        while True:
            self.check()
            try:
                found = self._asked()
            except DataLostError as e:
                self._signals.set_trouble(str(e), lost=True)
                raise
            except StreamerError as e:
                self._signals.set_trouble(str(e))
                self._failures += 1
                self.nap(min(LOOK * 2**self._failures, _LONGEST))
                continue
            self._failures = 0
            self._signals.set_trouble("")
            return found

    def check(self) -> None:
        """Raise `StoppedError` when the stream is to stop."""
        if self._signals.stopping():
            raise StoppedError("the stream stops")

    def nap(self, seconds: float = LOOK) -> None:
        """Wait; a stop ends it, and so does a window that is due."""
        until = self._now() + seconds
        while (left := until - self._now()) > 0:
            self.check()
            due = self._signals.due()
            if due is not None and not self._failures:
                left = min(left, max(due - self._clock(), 0) / 1e9)
            if left <= 0:
                return
            self._sleep(min(left, LOOK))

    def _asked(self) -> Waiting:
        known = self._signals.known()
        messages, more, ends = 0, False, list[Offsets]()
        for number, child in enumerate(self._children):
            at: Offsets = known[number] if number < len(known) else {}
            standing = child.reading.standing(at)
            messages += standing.waiting
            more = more or standing.more or standing.waiting > child.most
            ends.append(standing.ends)
        return Waiting(messages, more, ends)
