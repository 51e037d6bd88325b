"""The assigner of windows of whole local days, which are as long as the clocks make them.

Windows are those of `grid.Grid`: left-open, right-closed, and named by their last instant. A window
begins with every `every`-th day and lasts `size` days; see `days` for where a day begins. Where a
date never was, two windows may end at the same instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from streamer.window.settings.local_days import LocalDays

if TYPE_CHECKING:
    from streamer.window.settings.int_codec import Ints

Days = TypeVar("Days", int, "Ints")

_MAX_TIME_NS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DayGrid:
    """Windows of local days.

    Attributes:
        days: where days begin.
        every: days from one start to the next, > 0; starts are the multiples of it.
        size: days, >= every.
    """

    days: LocalDays
    every: int
    size: int

    @property
    def overlapping(self) -> bool:
        """Whether a time may belong to several windows."""
        return self.size > self.every

    def end_at_or_before(self, t: int) -> int:
        """Return the newest end that is not after a time."""
        # A day's last instant is at or before t when the next day has begun by t + 1.
        next_day = self.days.day_of(t + 1)
        return self._last_instant_before(next_day - (next_day - self.size) % self.every)

    def end_at_or_after(self, t: int) -> int:
        """Return the oldest end that is not before a time: of the oldest window that holds it."""
        return self._last_instant_before(self._next_day(self.days.day_of(t), self.size))

    def last_end(self, t: int) -> int:
        """Return the end of the newest window that holds a time."""
        day = self.days.day_of(t)
        return self._last_instant_before(day - day % self.every + self.size)

    def windows_of(self, t: int) -> list[int]:
        """Return the ends of all windows that hold a time, or a pane, oldest first."""
        day = self.days.day_of(t)
        until = range(self._next_day(day, self.size), day + self.size + 1, self.every)
        return sorted({self._last_instant_before(next_day) for next_day in until})

    def pane_of(self, t: int) -> int:
        """Return the pane of a time: see `grid.Grid.pane_of`."""
        day = self.days.day_of(t)
        return min(
            self._last_instant_before(min(self._next_day(day, 0), self._next_day(day, self.size))),
            _MAX_TIME_NS,
        )

    def panes_of_times(self, times: Ints) -> Ints:
        """Return the panes of many times."""
        import numpy as np

        days = self.days.days_of(times)
        until = np.minimum(self._next_day(days, 0), self._next_day(days, self.size))
        distinct, places = np.unique(until, return_inverse=True)
        panes = [min(self._last_instant_before(day), _MAX_TIME_NS) for day in distinct.tolist()]
        return np.array(panes, np.int64)[places]

    def starts_of(self, end: int) -> tuple[int, ...]:
        """Return the starts of the windows with an end, oldest first: each is the last before."""
        starts = set()
        next_day = self.days.day_of(end + 1)
        while self._last_instant_before(next_day) == end:
            if (next_day - self.size) % self.every == 0:
                starts.add(self._last_instant_before(next_day - self.size))
            next_day -= 1
        return tuple(sorted(starts - {end}))

    def _last_instant_before(self, next_day: int) -> int:
        """Return the last instant before a day."""
        return self.days.begin_of(next_day) - 1

    def _next_day(self, day: Days, phase: int) -> Days:
        """Return the next day after one, or after each, that is `phase` days after a start."""
        return day + 1 + (phase - day - 1) % self.every
