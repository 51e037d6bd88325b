"""The figures of a stream on the driver: what its workers counted and timed, and what it did."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import orjson

from streamer.engine.task import PEAK, SET
from streamer.engine.timing import Times, Timing
from streamer.tally import bucket_of

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels with their values, sorted."""


EVENT_TIME: Final = "event_time"
"""The event time, Unix ns, of the newest of the last messages of a micro-batch's pieces."""


def key_of(name: str, labels: Mapping[str, str]) -> Key:
    """Return what a figure is kept under."""
    return name, tuple(sorted(labels.items()))


class Meters:
    """Counts and times since the start of the program. Others may ask while they are added to.

    Attributes:
        counts: counters and gauges, by name and labels.
        peaks: the largest values of the micro-batch in hand, by name and labels.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin at nothing; `now` is a clock that never runs backwards, seconds."""
        self.counts: Counter[Key] = Counter()
        self.peaks: dict[Key, int] = {}
        self._timings: dict[Key, Timing] = {}
        self._now = now

    def count(self, name: str, labels: Mapping[str, str], by: int = 1) -> None:
        """Add to a counter."""
        self.counts[key_of(name, labels)] += by

    def set(self, name: str, labels: Mapping[str, str], value: float | None) -> None:
        """Set a gauge; None removes it."""
        if value is None:
            self.counts.pop(key_of(name, labels), None)
        else:
            self.counts[key_of(name, labels)] = value  # type: ignore[assignment]

    def time(self, name: str, labels: Mapping[str, str], ns: int) -> None:
        """Add one time, ns."""
        self._timing(name, labels).add(ns, [(bucket_of(ns), 1)], self._now())

    def add_counts(self, body: bytes) -> dict[str, int]:
        """Add a frame of counts; return what has been added, by name alone."""
        added: Counter[str] = Counter()
        for name, by, labels, *how in orjson.loads(body):
            if how == [SET]:
                self.counts[key_of(name, labels)] = by
                continue
            if how == [PEAK]:
                key = key_of(name, labels)
                self.peaks[key] = max(self.peaks.get(key, by), by)
                continue
            self.count(name, labels, by)
            added[name] += by
        return added

    def add_timings(self, body: bytes) -> None:
        """Add a frame of times."""
        for name, total, buckets, labels in orjson.loads(body):
            found = [(int(bucket), number) for bucket, number in buckets.items()]
            self._timing(name, labels).add(total, found, self._now())

    def times(self) -> dict[Key, Times]:
        """Return all times."""
        now = self._now()
        return {key: timing.times(now) for key, timing in dict(self._timings).items()}

    def _timing(self, name: str, labels: Mapping[str, str]) -> Timing:
        return self._timings.setdefault(key_of(name, labels), Timing())
