"""The gate before the micro-batches of a stream that reads Kafka.

Spark would start one whenever Kafka has a message more. It asks our source first what there is, so
our source answers when a micro-batch is worth it, and what Kafka has by then is in it. A broker
that does not answer is waited for here, where nothing has begun that could fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.core.errors import StreamerError
from streamer.engine.planner.kafka_inputs import StreamKafkaInput
from streamer.engine.planner.planner_channels import DriverHints, PlannerChannel

POLL_INTERVAL_S: Final = 0.25
"""Seconds between two looks that find nothing worth a micro-batch."""

_MAX_BACKOFF_S: Final = 5.0


class StoppedError(Exception):
    """The stream is to stop: raised in place of an offset, so that no micro-batch begins."""


class TotalBacklog(NamedTuple):
    """The messages that wait in all Kafka inputs.

    Attributes:
        messages: how many.
        more: more than one micro-batch takes.
        ends: the ends of all partitions, for each input.
    """

    messages: int
    more: bool
    ends: list[Offsets]


class KafkaAdmission:
    """Waits, in the process that plans micro-batches."""

    def __init__(
        self,
        children: Sequence[StreamKafkaInput],
        signals: PlannerChannel,
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

    def read_backlog(self) -> TotalBacklog:
        """Return what waits, when all brokers answer.

        Raises:
            StoppedError: the stream is to stop.
            DataLostError: something that is to be read is gone.
        """
        while True:
            hints = self._read_hints()
            try:
                backlog = self._query_inputs(hints.planned_ends)
            except DataLostError as e:
                self._signals.planner.update(trouble=str(e), is_lost=True)
                raise
            except StreamerError as e:
                self._signals.planner.update(trouble=str(e), is_lost=False)
                self._failures += 1
                self.wait(min(POLL_INTERVAL_S * 2**self._failures, _MAX_BACKOFF_S))
                continue
            self._failures = 0
            self._signals.planner.update(trouble="", is_lost=False)
            return backlog

    def wait(self, seconds: float = POLL_INTERVAL_S) -> None:
        """Wait; a stop ends it, and so does a window that is due."""
        until = self._now() + seconds
        while (left := until - self._now()) > 0:
            due = self._read_hints().due
            if due is not None and not self._failures:
                left = min(left, max(due - self._clock(), 0) / 1e9)
            if left <= 0:
                return
            self._sleep(min(left, POLL_INTERVAL_S))

    def _read_hints(self) -> DriverHints:
        hints = self._signals.driver.read()
        if hints.is_stopping:
            raise StoppedError("the stream stops")
        return hints

    def _query_inputs(self, planned: Sequence[Offsets]) -> TotalBacklog:
        messages, more, ends = 0, False, list[Offsets]()
        for number, child in enumerate(self._children):
            at: Offsets = planned[number] if number < len(planned) else {}
            standing = child.input.backlog(at)
            messages += standing.waiting
            more = more or standing.more or standing.waiting > child.max_messages
            ends.append(standing.ends)
        return TotalBacklog(messages, more, ends)
