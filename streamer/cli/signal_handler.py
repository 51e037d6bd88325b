"""SIGTERM and SIGINT, while a stream runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from streamer.core.durations import SECOND, format_duration
from streamer.core.log_format import LogLine


def delay_stop(delay: int, stopper: SignalHandler, log: LogLine) -> None:
    """Go on for `shutdown_delay`, so that metrics are collected once more; a signal ends it.

    Args:
        delay: ns.
        stopper: takes the signals.
        log: takes log lines.
    """
    if delay > 0:
        text = f"Shutdown delay is in effect for {format_duration(delay)}"
        if not stopper.delay(delay / SECOND, lambda: log("INFO", text, {})):
            log("INFO", "The shutdown delay was ended by a signal", {})


class SignalHandler:
    """The first signal asks for a stop between micro-batches, the second insists.

    Attributes:
        stop_requested: set by the first signal.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        """Take over both signals."""
        self._log = log
        self.stop_requested = threading.Event()
        self._delay: threading.Event | None = None
        self.install()

    def install(self) -> None:
        """Take over both signals; starting Spark takes SIGINT away, so this is done again then."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def delay(self, seconds: float, on_start: Callable[[], None]) -> bool:
        """Wait; a signal that comes meanwhile ends the waiting.

        Args:
            seconds: how long.
            on_start: called once signals are understood that way.

        Returns:
            Whether no signal came.
        """
        self._delay = threading.Event()
        try:
            on_start()
            return not self._delay.wait(seconds)
        finally:
            self._delay = None

    def _handle(self, number: int, frame: Any) -> None:
        if self._delay is not None:
            self._delay.set()
            self.stop_requested.set()
            return
        if self.stop_requested.is_set():
            # Nothing is lost: offsets and windows are in the checkpoint, the rest is replayed.
            os._exit(1)
        self.stop_requested.set()
        name = signal.Signals(number).name
        self._log(f"Received {name}: finishing the micro-batch in hand; again to stop at once")
