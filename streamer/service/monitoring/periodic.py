"""Something that is done again and again in a thread, and once at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamer.core.durations import SECOND


class PeriodicTask:
    """Calls a function on an interval."""

    def __init__(self, action: Callable[[bool], None], interval: int | None) -> None:
        """Begin.

        Args:
            action: called with whether this is the last time; it raises nothing.
            interval: nanoseconds between two calls; None calls it at the end only.
        """
        self._action = action
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        if interval:
            seconds = interval / SECOND
            self._thread = threading.Thread(
                target=self._run, args=(seconds,), daemon=True, name="metrics"
            )
            self._thread.start()

    def _run(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            self._action(False)

    def stop(self) -> None:
        """Stop, and call the function a last time."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self._action(True)
