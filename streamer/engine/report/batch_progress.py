"""Progress of the running micro-batch: messages that tasks have read, share, time left."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from streamer.core.log_format import LogLine
from streamer.sdk.input.replayable import FileExtent

_RATE_WINDOW_S: Final = 30.0
"""The reading speed is that of so many seconds: a file is rarely the same all through."""

_FIRST_ESTIMATE_S: Final = 1.5
"""Seconds of reading before which the time left is a guess."""

_STALL_S: Final = 1.0
"""Seconds without a report after which a task is not reading: what waits counts as slow reading."""

_LOG_AFTER_S: Final = 10.0
"""Seconds after which a first micro-batch has a log line; the next ones after twice the time."""


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """A micro-batch that is being read.

    Attributes:
        seconds: since it began.
        messages: read so far.
        name: of the files that it reads, `cars.jsonl` or `12 files`; empty where nothing is known
            of their size.
        share: of the files' bytes, how many are read, 0 to 1, with what former micro-batches have
            read; None where nothing is known of their size.
        seconds_left: seconds until the files are read; None as long as that cannot be said.
    """

    seconds: float
    messages: int
    name: str = ""
    share: float | None = None
    seconds_left: float | None = None

    @property
    def text(self) -> str:
        """The progress in words, `41 % of cars.jsonl, about 12 s left, 1,240,000 messages read`.

        What matters most stands first: a narrow terminal cuts the end off.
        """
        return ", ".join(filter(None, [self.file_text, f"{self.messages:,} messages read"]))

    @property
    def file_text(self) -> str:
        """The share of the files and the time left; empty where nothing is known of their size."""
        parts = []
        if self.share is not None:
            parts.append(f"{int(self.share * 100)} % of {self.name}")
        if self.seconds_left is not None:
            parts.append(f"about {_format_rough_duration(self.seconds_left)} left")
        return ", ".join(parts)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The progress as fields of a log line."""
        entries: dict[str, Any] = {"seconds": round(self.seconds, 1), "messages": self.messages}
        if self.share is not None:
            entries["share"] = f"{int(self.share * 100)} % of {self.name}"
        if self.seconds_left is not None:
            entries["seconds_left"] = round(self.seconds_left)
        return entries


class BatchMeter:
    """Adds up what the tasks of the micro-batch in hand report. Several threads may use it."""

    def __init__(
        self,
        extent: Callable[[], FileExtent | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a micro-batch.

        Args:
            extent: returns where in its files the micro-batch is; asked when its first report
                has come, so that it is planned.
            clock: never runs backwards, seconds.
        """
        self._get_extent = extent
        self._clock = clock
        self._lock = threading.Lock()
        self._number: int | None = None
        self._began = 0.0
        self._extent: FileExtent | None = None
        self._tasks: dict[int, tuple[int, int]] = {}
        self._samples: deque[tuple[float, int]] = deque()

    def begin(self, number: int) -> None:
        """Begin a micro-batch, by its number."""
        with self._lock:
            self._number, self._began = number, self._clock()
            self._extent = None
            self._tasks.clear()

    def end(self) -> None:
        """End the micro-batch in hand."""
        with self._lock:
            self._number = None

    def report(self, number: int, task: int, messages: int, size: int) -> None:
        """Take what a task has read so far.

        Args:
            number: the micro-batch's.
            task: the task's number in it; one that is run again counts once.
            messages: read so far.
            size: bytes of files read so far.
        """
        with self._lock:
            if number != self._number:
                return
            if self._extent is None:
                self._extent = self._get_extent()
            self._tasks[task] = messages, size
            if self._extent is not None:
                self._add_sample(self._extent.before + self._bytes_read(self._extent))

    def current_progress(self) -> BatchProgress | None:
        """Return the progress of the micro-batch in hand; None between two."""
        with self._lock:
            if self._number is None:
                return None
            now = self._clock()
            seconds = now - self._began
            messages = sum(messages for messages, _ in self._tasks.values())
            extent = self._extent
            if extent is None or not extent.total:
                return BatchProgress(seconds, messages)
            done = extent.before + self._bytes_read(extent)
            share = min(done / extent.total, 1.0)
            return BatchProgress(
                seconds, messages, extent.name, share, self._estimate_seconds_left(extent, now)
            )

    def count_messages(self) -> int:
        """Return how many messages of the micro-batch in hand have been read."""
        with self._lock:
            return sum(messages for messages, _ in self._tasks.values())

    def _bytes_read(self, extent: FileExtent) -> int:
        return min(sum(size for _, size in self._tasks.values()), extent.size)

    def _add_sample(self, done: int) -> None:
        now, samples = self._clock(), self._samples
        # Files that begin anew, or a micro-batch that does.
        if samples and done < samples[-1][1]:
            samples.clear()
        samples.append((now, done))
        while len(samples) > 2 and now - samples[1][0] > _RATE_WINDOW_S:
            samples.popleft()

    def _estimate_seconds_left(self, extent: FileExtent, now: float) -> float | None:
        if not self._samples:
            return None
        (first, before), (last, done) = self._samples[0], self._samples[-1]
        rest = extent.total - done
        # Whoever has read all may still be at work, and nobody knows for how long.
        if last - first < _FIRST_ESTIMATE_S or done <= before or rest <= 0:
            return None
        if now - last > _STALL_S:
            return rest * (now - first) / (done - before)
        # Reports come twice a second: between two of them the time goes on.
        return max(rest * (last - first) / (done - before) - (now - last), 0.0)


class ProgressLog:
    """Decides when a first micro-batch that takes long is worth a log line: ever more seldom."""

    def __init__(self) -> None:
        """Begin before the micro-batch."""
        self._next = _LOG_AFTER_S

    def is_due(self, progress: BatchProgress) -> bool:
        """Return whether it is time for a line, and count on that it is written."""
        if progress.seconds < self._next:
            return False
        self._next = progress.seconds * 2
        return True


class ReadingLog:
    """Logs how far files are read that take many micro-batches: ever more seldom."""

    def __init__(self, log: LogLine, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to count the time.

        Args:
            log: takes log lines.
            clock: never runs backwards, seconds.
        """
        self._log = log
        self._clock = clock
        self._began = clock()
        self._schedule = ProgressLog()

    def log(self, batch: BatchProgress) -> None:
        """Log the micro-batch in hand, if a line is due and it is not known to be the last one."""
        if batch.share is None or batch.share >= 1:
            return
        whole = replace(batch, seconds=self._clock() - self._began)
        if self._schedule.is_due(whole):
            self._log("INFO", "The files are being read", whole.fields)


def _format_rough_duration(seconds: float) -> str:
    """Write a time as one says it: `12 s`, `2 min 10 s`, `3 h 20 min`."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        minutes, rest = divmod(round(whole, -1), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(round(minutes, -1), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
