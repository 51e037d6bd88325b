"""Taps of the two revisions of a canary: they keep the results of windows on the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from streamer.engine.canary.captured_windows import CapturedWindows, Portion
from streamer.engine.report.result_frame import Frame


class ResultTap:
    """Receives the results of one revision, from a micro-batch on (`WindowTap`).

    Attributes:
        first_batch: the number of the first micro-batch whose results are here; None before.
        newest_batch: of the newest one; -1 before the first.
        error: what has gone wrong, so that nothing is received any more; None for nothing.
        size: bytes that wait on the disk.
    """

    def __init__(
        self,
        captured: CapturedWindows,
        on_first: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin.

        Args:
            captured: keeps the results.
            on_first: called before the first micro-batch runs, in the stream's thread.
            now: a clock that never runs backwards, seconds.
        """
        self._captured = captured
        self._on_first = on_first
        self._now = now
        self._has_begun = False
        self._delivered_at: dict[int, float] = {}
        self._lock = threading.Lock()
        self._kept_from = -1
        self.has_first = threading.Event()
        self.first_batch: int | None = None
        self.newest_batch = -1
        self.error: Exception | None = None
        self.size = 0

    def begin_batch(self, number: int) -> None:
        """Note the first micro-batch that runs with this tap; see `WindowTap`."""
        if self._has_begun:
            return
        self._has_begun = True
        try:
            self._on_first()
        except Exception as e:  # the stream itself goes on, whatever that is
            self.error = e
        self.has_first.set()

    def take_results(self, batch: int, frames: Sequence[Frame]) -> None:
        """Keep the results of a micro-batch; see `WindowTap`."""
        if not self._has_begun or self.error is not None:
            return
        try:
            with self._lock:
                if batch < self._kept_from or batch in self._delivered_at:
                    return  # Its commit failed, and it came again: alike.
                self.size += self._captured.add(batch, frames)
                self._delivered_at[batch] = self._now()
                if self.first_batch is None:
                    self.first_batch = batch
                self.newest_batch = max(self.newest_batch, batch)
        except Exception as e:
            self.error = e

    def waiting_seconds(self) -> float:
        """Return for how long the oldest results have waited to be compared, s."""
        with self._lock:
            return self._now() - min(self._delivered_at.values(), default=self._now())

    def read(self, batch: int) -> Sequence[Portion]:
        """Return the results of a micro-batch, which is here.

        Raises:
            OSError: they cannot be read.
        """
        return self._captured.read(batch)

    def discard(self, batch: int) -> None:
        """Delete the results of a micro-batch, which are compared.

        Raises:
            OSError: they cannot be deleted.
        """
        with self._lock:
            self.size -= self._captured.delete(batch)
            self._delivered_at.pop(batch, None)
            self._kept_from = batch + 1
