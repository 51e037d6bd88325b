"""Measures work, without the time in which the process did not run.

A process that is stopped (SIGSTOP), or that gets no core, is not slow: neither is what it was at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

_BEAT_S: Final = 0.5
MAX_GAP_NS: Final = 2_000_000_000
"""A thread that wants to run every `_BEAT_S` seconds and could not for so long: nothing ran."""

Mark = tuple[int, int]
"""A moment: what the steady clock says, and how long the process has not run by then, ns."""

T = TypeVar("T")


class RunningClock:
    """Measures how long something takes while it is `timed`; threads may share it.

    Meanwhile a thread looks at the clock again and again. Between two looks that are far apart
    nothing ran, but for what the process's own CPU time says.
    """

    def __init__(
        self,
        steady: Callable[[], int] = time.monotonic_ns,
        cpu: Callable[[], int] = time.process_time_ns,
        beats: bool = True,
    ) -> None:
        """Take the clocks.

        Args:
            steady: a clock that never runs backwards, ns.
            cpu: the CPU time of the process, ns.
            beats: have a thread look; without, only `look` does.
        """
        self._steady = steady
        self._cpu = cpu
        self._beats = beats
        self._lock = threading.Lock()
        self._users = 0
        self._beat_stop = threading.Event()
        self._standstill_ns = 0
        self._at = 0
        self._cpu_at = 0

    def mark(self) -> Mark:
        """Return this moment."""
        return self._steady(), self._standstill_ns

    def since(self, mark: Mark) -> int:
        """Return how long the process has run since a moment, ns."""
        at, stood = mark
        took = self._steady() - at
        if took <= MAX_GAP_NS:
            return took
        # The thread may not have looked yet.
        self.check()
        return max(took - (self._standstill_ns - stood), 0)

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure meanwhile."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._at, self._cpu_at = self._steady(), self._cpu()
                self._beat_stop = threading.Event()
                if self._beats:
                    threading.Thread(
                        target=self._beat, args=(self._beat_stop,), daemon=True
                    ).start()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._beat_stop.set()

    def check(self) -> None:
        """Read the clocks; count the gap since the last check as standstill when it is too long."""
        with self._lock:
            at, used = self._steady(), self._cpu()
            gap = at - self._at
            if gap > MAX_GAP_NS:
                self._standstill_ns += gap - min(used - self._cpu_at, gap)
            self._at, self._cpu_at = at, used

    def _beat(self, stop: threading.Event) -> None:
        while not stop.wait(_BEAT_S):
            self.check()


class Stopwatch:
    """Times what a task does for itself: its processors and outputs, and nothing around them.

    Attributes:
        clock: what it is timed by; it is to be `timed` meanwhile.
        work: how long they took together, ns.
    """

    def __init__(self, clock: RunningClock) -> None:
        """Take a clock."""
        self.clock = clock
        self.work = 0

    def time_items(self, items: Iterable[T]) -> Iterator[T]:
        """Give the items: to make one is work, what is done with it is not."""
        return self._add_item_times(items, 1)

    def exclude_items(self, items: Iterable[T]) -> Iterator[T]:
        """Give the items to the work: to make one is no part of it."""
        return self._add_item_times(items, -1)

    @contextmanager
    def time_block(self) -> Iterator[None]:
        """Time what is done meanwhile."""
        began = self.clock.mark()
        try:
            yield
        finally:
            self.work += self.clock.since(began)

    def _add_item_times(self, items: Iterable[T], sign: int) -> Iterator[T]:
        mark, since = self.clock.mark, self.clock.since
        iterator = iter(items)
        while True:
            began = mark()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.work += sign * since(began)
            yield item
