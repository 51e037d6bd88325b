"""History of a stream's recent windows on the driver, for status pages."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

MAX_ENTRIES: Final = 200
"""Windows, and drops, that are remembered."""

LAG_METRIC_KEY: Final = ("event_time_lag_seconds", ())
"""What the lag of event times is counted under."""

_MAX_STARTS: Final = 2_000


class ClosedWindow(NamedTuple):
    """A window that closed.

    Attributes:
        start: ns; None when it was never listed as open.
        end: ns.
        messages: how many it had.
        reason: why it closed (`final`, `flush`, `expired`, …).
        at: the time of the micro-batch, ns.
        key: its key as a text, where each key has windows of its own; else None.
        buffer: label of its buffer, where there are several; else empty.
    """

    start: int | None
    end: int
    messages: int
    reason: str
    at: int
    key: str | None = None
    buffer: str = ""


class DroppedMessages(NamedTuple):
    """Messages that were dropped in a micro-batch.

    Attributes:
        at: its time, ns.
        reason: why.
        messages: how many.
        event_time: the newest event time at that time, ns; None when it was not known.
        sample: one of them, see `window.contract.DroppedSample`; None where none was kept.
    """

    at: int
    reason: str
    messages: int
    event_time: int | None
    sample: Mapping[str, Any] | None = None


class WindowHistory:
    """The newest closed windows and dropped messages; threads may read it while it is updated.

    Attributes:
        event_time: the newest event time that is known, ns; None before.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        """Begin with nothing; `clock` gives the time, ns."""
        self._clock = clock
        self._lock = threading.Lock()
        self._closed: deque[ClosedWindow] = deque(maxlen=MAX_ENTRIES)
        self._drops: deque[DroppedMessages] = deque(maxlen=MAX_ENTRIES)
        self._starts: dict[int, int] = {}
        self._dropped: dict[str, int] | None = None
        self._lag: float | None = None
        self._batch: int | None = None
        self._taken = 0
        self.event_time: int | None = None

    def record(
        self, batch: int, statuses: Iterable[Mapping[str, Any]], lag: float | None = None
    ) -> None:
        """Record the statuses of shards after a micro-batch.

        Args:
            batch: its number; one that comes again is counted once.
            statuses: of all shards.
            lag: how old the newest message was, s; None when nobody knows.
        """
        statuses = [status for status in statuses if "counters" in status]
        if batch == self._batch:
            return
        self._batch = batch
        now = max((status["now"] for status in statuses), default=self._clock())
        with self._lock:
            taken = sum(status["counters"].get("taken", 0) for status in statuses)
            if taken < self._taken:
                self.event_time = None  # The windows have begun anew.
            self._taken = taken
            if lag is not None and lag != self._lag:
                # A late message does not set the clock back.
                known, newest = self.event_time, self._clock() - round(lag * 1e9)
                self._lag = lag
                self.event_time = newest if known is None else max(known, newest)
            for status in statuses:
                for one in status.get("open", ()):
                    self._starts[one["end"]] = one["start"]
            self._record_closed(statuses, now)
            self._record_dropped(statuses, now)

    def _record_closed(self, statuses: list[Mapping[str, Any]], now: int) -> None:
        counts: dict[tuple[str, int, int | None, str | None, str], int] = {}
        for status in statuses:
            # A shard that had no row in this micro-batch says what it said before.
            for one in status.get("closed", ()) if status["now"] == now else ():
                end = one["end"]
                start = one.get("start")
                start = self._starts.get(end) if start is None else start
                place = status.get("buffer", ""), end, start, one.get("key"), one["reason"]
                # Taken out first: the last one comes last, which a retraction may be or not.
                counts[place] = counts.pop(place, 0) + one["messages"]
        for place, messages in sorted(counts.items(), key=lambda entry: entry[0][1]):
            buffer, end, start, key, reason = place
            self._closed.append(ClosedWindow(start, end, messages, reason, now, key, buffer))
        if len(self._starts) > _MAX_STARTS:
            self._starts = dict(sorted(self._starts.items())[-_MAX_STARTS // 2 :])

    def _record_dropped(self, statuses: list[Mapping[str, Any]], now: int) -> None:
        total: dict[str, int] = {}
        for status in statuses:
            for reason, number in status["counters"].get("dropped", {}).items():
                total[reason] = total.get(reason, 0) + number
        # What was dropped before the start is of another time.
        for reason, number in total.items() if self._dropped is not None else ():
            more = number - (self._dropped or {}).get(reason, 0)
            if more > 0:
                sample = _find_sample(statuses, now, reason)
                self._drops.append(DroppedMessages(now, reason, more, self.event_time, sample))
        self._dropped = total

    def closed_windows(self) -> list[ClosedWindow]:
        """Return the windows that closed, the newest last."""
        with self._lock:
            return list(self._closed)

    def drops(self) -> list[DroppedMessages]:
        """Return what was dropped, the newest last."""
        with self._lock:
            return list(self._drops)


def _find_sample(
    statuses: list[Mapping[str, Any]], now: int, reason: str
) -> Mapping[str, Any] | None:
    """Return a sample of what was dropped for a reason in this micro-batch; None without one."""
    samples: Iterator[Mapping[str, Any]] = (
        line["sample"]
        for status in statuses
        if status["now"] == now
        for line in status.get("log", ())
        if line.get("sample") is not None and line["fields"].get("reason") == reason
    )
    return next(samples, None)
