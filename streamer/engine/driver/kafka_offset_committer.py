"""Commits offsets to Kafka's consumer groups, and measures how far a stream is behind.

In a thread of its own on the driver, which a broker that is away may hold up as long as it likes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.start_offsets import nest_offsets
from streamer.core.errors import StreamerError
from streamer.engine.driver.arrival_times import ArrivalTimes
from streamer.engine.planner.checkpoint_path import Location
from streamer.engine.planner.kafka_inputs import StreamKafkaInput
from streamer.engine.planner.offset_log import is_committed, read_planned

_POLL_INTERVAL_S: Final = 0.25
_STALLED_S: Final = 8.0
"""Seconds without anything read after which it is looked whether there is still something."""

_LOSS_CHECK_INTERVAL_S: Final = 1.0

_LAST_COMMIT_TIMEOUT_S: Final = 10.0
"""Seconds for the last commit."""

OLDEST_UNREAD: Final = "input_oldest_unread_timestamp_seconds"
COMMIT_FAILURES: Final = "input_group_commit_failures_total"

SetGauge = Callable[[str, Mapping[str, str], float | None], None]
"""Sets a gauge of the input, by its name and the labels beside the input's own; None removes it."""


class KafkaOffsetCommitter:
    """Commits for the Kafka inputs of one stream while it runs.

    Attributes:
        data_loss: what the micro-batch in hand was to read and is gone, in one line; empty while
            nothing is.
    """

    def __init__(
        self,
        children: Sequence[StreamKafkaInput],
        spark: Location,
        gauge: SetGauge,
        log: Callable[[str, str, Mapping[str, Any]], None],
        read: Callable[[], int] = lambda: 0,
        now: Callable[[], float] = time.monotonic,
        count: Callable[[str], None] = lambda name: None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin.

        Args:
            children: the Kafka inputs.
            spark: Spark's checkpoint directory.
            gauge: sets a gauge, by its name and labels.
            log: takes log lines.
            read: returns how many messages of the micro-batch in hand have been read.
            now: a clock that never runs backwards, seconds.
            count: adds one to a counter of the input, by its name.
            wall: the time of day, Unix seconds.
        """
        self._count = count
        self._wall = wall
        self._arrivals: dict[tuple[int, str, str], ArrivalTimes] = {}
        self._oldest: dict[tuple[int, str, str], float | None] = {}
        self.data_loss = ""
        self._children = children
        self._spark = spark
        self._gauge = gauge
        self._log = log
        self._planned: list[tuple[int, Sequence[Offsets]]] = []
        self._read = read
        self._now = now
        self._stall: tuple[int, float] | None = None
        self._checked_at = float("-inf")
        self._last_started = -1
        self._lost_messages: Counter[tuple[str, str]] = Counter()
        self._gap_starts: dict[tuple[str, str], int] = {}
        self._committed_ends: list[Offsets] = [{} for _ in children]
        self._committed_at = [float("-inf")] * len(children)
        self._logged_errors: dict[int, str] = {}
        self._lag_at = [float("-inf")] * len(children)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="kafka")
        self._thread.start()

    def batch_started(self, number: int, ends: Sequence[Offsets]) -> None:
        """Note that a micro-batch begins: all before it are committed."""
        before = self._ends_before(number)
        self.note_end(number, ends)
        if number != self._last_started:
            self._last_started = number
            self._report_skipped(before, ends)
        self._stall = (-1, self._now())

    def _ends_before(self, number: int) -> Sequence[Offsets]:
        """Return where a micro-batch begins; nothing for the first."""
        for known, ends in self._planned:
            if known == number - 1:
                return ends
        is_logged = number > 0 and (self._spark / "offsets" / str(number - 1)).exists()
        return (
            read_planned(self._spark, number - 1).ends
            if is_logged
            else [{} for _ in self._children]
        )

    def _report_skipped(self, before: Sequence[Offsets], ends: Sequence[Offsets]) -> None:
        """Log and count what is gone of a micro-batch, where a stream goes on all the same."""
        for child, since, until in zip(self._children, before, ends, strict=True):
            for one in child.input.find_skipped(since or child.start_offsets, until):
                name, place = child.input.lost_metric, (one.topic, one.partition)
                if self._gap_starts.get(place) != one.begins:
                    self._log("WARN", f"Messages are gone that were not read: {one.text}", {})
                    self._gap_starts[place] = one.begins
                self._lost_messages[place] += one.messages
                labels = {"topic": one.topic, "partition": one.partition}
                self._gauge(name, labels, self._lost_messages[place])

    def note_end(self, number: int, ends: Sequence[Offsets]) -> None:
        """Note where a micro-batch ends."""
        self._planned = [*self._planned[-1:], (number, ends)]

    def batch_delivered(self) -> None:
        """Note that the micro-batch has left Kafka."""
        self._stall = None

    def close(self) -> None:
        """Commit finished offsets when the query has ended; disconnect from the brokers."""
        self._stopped.set()
        last = threading.Thread(target=self._finish, daemon=True, name="kafka-last")
        last.start()
        last.join(_LAST_COMMIT_TIMEOUT_S)

    def _finish(self) -> None:
        self._thread.join()
        self._commit(now=True)
        # Metrics that are written at the end tell where the stream has ended.
        self._measure(now=True)
        for child in self._children:
            child.input.close()

    def _run(self) -> None:
        while not self._stopped.wait(_POLL_INTERVAL_S):
            self._commit()
            self._measure()
            self._check_data_loss()

    def _commit(self, now: bool = False) -> None:
        """Commit to each group where the newest committed micro-batch ends."""
        safe = self._delivered_ends()
        if safe is None:
            return
        for index, (child, ends) in enumerate(zip(self._children, safe, strict=True)):
            reading, at = child.input, time.monotonic()
            due = now or at - self._committed_at[index] >= reading.commit_period / 1e9
            if not reading.group or not due or ends == self._committed_ends[index]:
                continue
            failed = reading.commit(ends)
            self._committed_at[index] = at
            if failed is None:
                self._committed_ends[index] = ends
            else:
                self._count(COMMIT_FAILURES)
            if failed is not None and failed != self._logged_errors.get(index):
                self._log("WARN", failed, {})
            self._logged_errors[index] = failed or ""

    def _measure(self, now: bool = False) -> None:
        """Set the gauges of how far each partition's end is ahead of the newest micro-batch."""
        newest = self._planned[-1][1] if self._planned else self._starts()
        for index, (child, ends) in enumerate(zip(self._children, newest, strict=True)):
            reading, at = child.input, time.monotonic()
            due = now or at - self._lag_at[index] >= reading.lag_period / 1e9
            if not reading.lag_metric or not due:
                continue
            self._lag_at[index] = at
            # What is wrong with a broker is said by those who cannot go on without it.
            with suppress(StreamerError):
                lags = reading.backlog(ends).lag_behind(ends)
                for (topic, partition), lag in lags.items():
                    self._gauge(reading.lag_metric, {"topic": topic, "partition": partition}, lag)
                self._note_arrivals(index, ends, lags)
        self._set_oldest()

    def _starts(self) -> Sequence[Offsets]:
        """Return where inputs begin, before there is any micro-batch."""
        return [
            child.start_offsets
            or nest_offsets({place: at for place, at in child.input.starting.items() if at >= 0})
            for child in self._children
        ]

    def _note_arrivals(
        self, index: int, ends: Offsets, lags: Mapping[tuple[str, str], int]
    ) -> None:
        """Note where the partitions of an input end, and since when messages wait there."""
        at = self._wall()
        done = self._delivered_ends()
        for (topic, partition), lag in lags.items():
            place = index, topic, partition
            arrivals = self._arrivals.setdefault(place, ArrivalTimes())
            arrivals.record(int(ends.get(topic, {}).get(partition, 0)) + lag, at)
            position = done[index].get(topic, {}).get(partition) if done else None
            self._oldest[place] = (
                None if position is None else arrivals.oldest_arrival(int(position))
            )

    def _set_oldest(self) -> None:
        known = [at for at in self._oldest.values() if at is not None]
        self._gauge(OLDEST_UNREAD, {}, min(known) if known else None)

    def _delivered_ends(self) -> Sequence[Offsets] | None:
        """Return where the newest micro-batch ends that is committed; None when none is known."""
        safe = [ends for number, ends in self._planned if is_committed(self._spark, number)]
        return safe[-1] if safe else None

    def _check_data_loss(self) -> None:
        """Check whether a micro-batch waits for messages of a topic that was deleted.

        Spark's reader waits a minute for them, and tries that again and again. What retention has
        cut is not looked for: the tasks may have read it by then.
        """
        stall, now = self._stall, self._now()
        if stall is None or self.data_loss:
            return
        messages = self._read()
        if messages != stall[0]:
            self._stall = stall = (messages, now)
        if now - stall[1] < _STALLED_S or now - self._checked_at < _LOSS_CHECK_INTERVAL_S:
            return
        self._checked_at = now
        number, ends = self._planned[-1]
        for child, until in zip(self._children, ends, strict=True):
            try:
                child.input.backlog(until)
            except DataLostError as error:
                if self._stall is not None:
                    self.data_loss = f"{error} (while micro-batch {number} was reading it)"
            except StreamerError:
                pass  # a broker that is away is said by `KafkaConnections`
