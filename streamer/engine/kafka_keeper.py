"""Tells Kafka's consumer groups what is safe, and the metrics how far a stream is behind.

In a thread of its own on the driver, which a broker that is away may hold up as long as it likes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from streamer.engine.beside import KafkaChild, is_committed, planned
from streamer.engine.location import Location
from streamer.errors import StreamerError
from streamer.kafka.reading import Offsets

_LOOK: Final = 0.25
_SLOW: Final = 10.0
"""Seconds after which a micro-batch is slow enough to ask whether its broker is there."""

_LAST: Final = 10.0
"""Seconds for the last commit."""

SetGauge = Callable[[str, Mapping[str, str], int], None]


class KafkaKeeper:
    """Looks after the Kafka inputs of one stream while it runs.

    Attributes:
        trouble: why a broker is not reached while a micro-batch waits for it; empty when it is.
    """

    def __init__(
        self,
        children: Sequence[KafkaChild],
        spark: Location,
        gauge: SetGauge,
        log: Callable[[str, str, Mapping[str, Any]], None],
    ) -> None:
        """Begin.

        Args:
            children: the Kafka inputs.
            spark: Spark's checkpoint directory.
            gauge: sets a gauge, by its name and labels.
            log: takes log lines.
        """
        self.trouble = ""
        self._children = children
        self._spark = spark
        self._gauge = gauge
        self._log = log
        self._planned: list[tuple[int, Sequence[Offsets]]] = []
        self._began: float | None = None
        self._looked_at = -1
        self._lost: Counter[tuple[str, str]] = Counter()
        self._gone: dict[tuple[str, str], int] = {}
        self._told: list[Offsets] = [{} for _ in children]
        self._told_at = [float("-inf")] * len(children)
        self._said: dict[int, str] = {}
        self._lag_at = [float("-inf")] * len(children)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="kafka")
        self._thread.start()

    def plans(self, number: int, ends: Sequence[Offsets]) -> None:
        """Hear that a micro-batch begins: all before it are committed."""
        before = self._before(number)
        self.knows(number, ends)
        if number != self._looked_at:
            self._looked_at = number
            self._tell_skipped(before, ends)
        self._began = time.monotonic()

    def _before(self, number: int) -> Sequence[Offsets]:
        """Return where a micro-batch begins; nothing for the first."""
        for known, ends in self._planned:
            if known == number - 1:
                return ends
        found = number > 0 and (self._spark / "offsets" / str(number - 1)).exists()
        return planned(self._spark, number - 1).ends if found else [{} for _ in self._children]

    def _tell_skipped(self, before: Sequence[Offsets], ends: Sequence[Offsets]) -> None:
        """Say and count what is gone of a micro-batch, where a stream goes on all the same."""
        for child, since, until in zip(self._children, before, ends, strict=True):
            for one in child.reading.skipped(since or child.begins, until):
                name, place = child.reading.lost_metric, (one.topic, one.partition)
                if self._gone.get(place) != one.begins:
                    self._log("WARN", f"Messages are gone that were not read: {one.text}", {})
                    self._gone[place] = one.begins
                self._lost[place] += one.messages
                labels = {"topic": one.topic, "partition": one.partition}
                self._gauge(name, labels, self._lost[place])

    def knows(self, number: int, ends: Sequence[Offsets]) -> None:
        """Hear where a micro-batch ends."""
        self._planned = [*self._planned[-1:], (number, ends)]

    def delivered(self) -> None:
        """Hear that the micro-batch has left Kafka."""
        self._began = None
        self.trouble = ""

    def close(self) -> None:
        """Commit what the stream has done, when its query has ended; let go of the brokers."""
        self._over.set()
        last = threading.Thread(target=self._finish, daemon=True, name="kafka-last")
        last.start()
        last.join(_LAST)

    def _finish(self) -> None:
        self._thread.join()
        self._commit(now=True)
        # Metrics that are written at the end tell where the stream has ended.
        self._measure(now=True)
        for child in self._children:
            child.reading.close()

    def _run(self) -> None:
        while not self._over.wait(_LOOK):
            self._commit()
            self._measure()
            self._look()

    def _commit(self, now: bool = False) -> None:
        """Tell each group where the newest micro-batch ends that is committed."""
        safe = [ends for number, ends in self._planned if is_committed(self._spark, number)]
        if not safe:
            return
        for index, (child, ends) in enumerate(zip(self._children, safe[-1], strict=True)):
            reading, at = child.reading, time.monotonic()
            due = now or at - self._told_at[index] >= reading.commit_period / 1e9
            if not reading.group or not due or ends == self._told[index]:
                continue
            failed = reading.commit(ends)
            self._told_at[index] = at
            if failed is None:
                self._told[index] = ends
            elif failed != self._said.get(index):
                self._log("WARN", failed, {})
            self._said[index] = failed or ""

    def _measure(self, now: bool = False) -> None:
        """Set the gauges of how far each partition's end is ahead of the newest micro-batch."""
        if not self._planned:
            return
        _, newest = self._planned[-1]
        for index, (child, ends) in enumerate(zip(self._children, newest, strict=True)):
            reading, at = child.reading, time.monotonic()
            due = now or at - self._lag_at[index] >= reading.lag_period / 1e9
            if not reading.lag_metric or not due:
                continue
            self._lag_at[index] = at
            # What is wrong with a broker is said by those who cannot go on without it.
            with suppress(StreamerError):
                reading.standing(ends)
                for (topic, partition), lag in reading.lag(ends).items():
                    self._gauge(reading.lag_metric, {"topic": topic, "partition": partition}, lag)

    def _look(self) -> None:
        """Find out whether a micro-batch waits for a broker."""
        began = self._began
        if began is None or time.monotonic() - began < _SLOW:
            return
        found = [child.reading.reachable() for child in self._children]
        self.trouble = next((text for text in found if text is not None), "")
