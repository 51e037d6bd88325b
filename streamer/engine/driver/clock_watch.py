"""Notices that the machine's clock was set, or that the machine was suspended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from streamer.core.durations import SECOND, format_duration
from streamer.core.log_format import LogLine

_MIN_STEP_NS: Final = SECOND
_MAX_READ_NS: Final = SECOND // 20
"""Clocks that were not read at one moment are read again: the process lost its core in between."""


def _read_boot_time() -> int:
    """Return the time since the machine began, ns; where it is known, also while suspended."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock)


class ClockWatch:
    """Compares the machine's clock with those that nobody can set; one looks for all streams."""

    def __init__(
        self,
        log: LogLine,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
        since_boot: Callable[[], int] = _read_boot_time,
    ) -> None:
        """Begin to watch.

        Args:
            log: takes log lines.
            wall: the machine's clock, ns.
            steady: a clock that stands still while the machine is suspended, ns.
            since_boot: one that does not, ns.
        """
        self._log = log
        self._wall = wall
        self._steady = steady
        self._since_boot = since_boot
        self._before = self._read()

    def check(self) -> None:
        """Log a step of the clock or a suspension since the last check."""
        now, before = self._read(), self._before
        self._before = now
        wall, steady, since_boot = (at - then for at, then in zip(now, before, strict=True))
        step, suspended = wall - since_boot, since_boot - steady
        if suspended >= _MIN_STEP_NS:
            lasted = _format_rounded(suspended)
            text = f"The machine was suspended for {lasted}: windows that fell due are emitted now"
            self._log("WARN", text, {"suspended": lasted})
        if abs(step) < _MIN_STEP_NS:
            return
        size = _format_rounded(abs(step))
        if step > 0:
            text = f"The machine's clock was set forward by {size}: windows close so much earlier"
        else:
            text = (
                f"The machine's clock was set back by {size}: windows advance at half speed "
                f"until it has caught up"
            )
        self._log("WARN", text, {"step": size if step > 0 else f"-{size}"})

    def _read(self) -> tuple[int, int, int]:
        while True:
            steady = self._steady()
            times = self._wall(), steady, self._since_boot()
            if self._steady() - steady <= _MAX_READ_NS:
                return times


def _format_rounded(ns: int) -> str:
    tenth = SECOND // 10
    return format_duration((ns + tenth // 2) // tenth * tenth)
