"""Arrival times of sample messages: the clock of a stream without Spark, one batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamer.bloblang import BloblangError, Mapping, compile_mapping
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.timestamps import parse_event_time
from streamer.engine.offline.window_simulator import EventTimeReader


@dataclass(frozen=True)
class ArrivalTimes:
    """The arrival times of messages.

    Attributes:
        clock: the time of the first message, ns; None for its event time.
        step: ns from one message to the next; None for the event times, or the message before
            where that is later.
        mapping: a mapping that gives a message's time of arrival; wins over both.
        option: the name of the option that has the mapping, for errors.
    """

    clock: int | None = None
    step: int | None = None
    mapping: str = ""
    option: str = "--arrival"


class ArrivalClock:
    """Clock of messages that arrive; it never runs backwards.

    Attributes:
        now: when the newest batch arrived, Unix ns; None before the first.
    """

    def __init__(
        self, event_times: EventTimeReader, arrivals: ArrivalTimes, now: Callable[[], int]
    ) -> None:
        """Begin before the first message.

        Args:
            event_times: reads the event times of messages.
            arrivals: when they arrive.
            now: the clock of the first message, when nothing else gives it.

        Raises:
            StreamerError: the mapping is none.
        """
        self.now: int | None = None
        self._event_times = event_times
        self._arrivals = arrivals
        self._first = now
        try:
            self._mapping = compile_mapping(arrivals.mapping) if arrivals.mapping else None
        except BloblangError as e:
            raise StreamerError(f"{arrivals.option}: {e}") from None

    def advance(self, batch: Batch, number: int) -> int:
        """Return the time at which a batch arrives, Unix ns.

        Args:
            batch: the messages, which arrive together.
            number: of the first of them in the sample, from 1.

        Raises:
            StreamerError: the mapping gives no time for it.
        """
        before, arrivals = self.now, self._arrivals
        if self._mapping is not None:
            at = self._query_mapping(self._mapping, batch, number)
        elif before is None and arrivals.clock is not None:
            at = arrivals.clock
        elif before is not None and arrivals.step is not None:
            at = before + arrivals.step
        else:
            now = before if before is not None else self._first()
            time = self._event_times.read(batch[0], now)
            at = now if time is None else time
        self.now = at if before is None else max(before, at)
        return self.now

    def _query_mapping(self, mapping: Mapping, batch: Batch, number: int) -> int:
        try:
            return parse_event_time(mapping.query(batch, 0, Execution(self._first)))
        except (MessageError, ValueError) as e:
            raise StreamerError(
                f"{self._arrivals.option}: message {number} has no time of arrival: {e}"
            ) from None
