"""The assigner of windows that lie on a grid: which windows and which pane a time belongs to.

Windows are left-open and right-closed and named by their end. A pane is a stretch of time whose
events all belong to the same windows, so that a message is stored once however many windows hold
it; it is named by its last instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Go rounds times down from here (`time.Time.Truncate`), so `7s` and `168h` are not aligned to 1970.
YEAR_ONE: Final = -62_135_596_800 * 1_000_000_000
_MAX_TIME_NS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Grid:
    """Windows (end - size, end], an end at every multiple of `epoch` since year 1, plus `offset`.

    Attributes:
        epoch: ns from one end to the next, > 0.
        size: ns, >= epoch.
        offset: ns, may be negative.
    """

    epoch: int
    size: int
    offset: int = 0

    @property
    def overlapping(self) -> bool:
        """Whether a time may belong to several windows."""
        return self.size > self.epoch

    def end_at_or_before(self, t: int) -> int:
        """Return the newest end that is not after a time."""
        return t - (t - YEAR_ONE - self.offset) % self.epoch

    def end_before(self, t: int) -> int:
        """Return the newest end before a time."""
        return self.end_at_or_before(t - 1)

    def end_at_or_after(self, t: int) -> int:
        """Return the oldest end that is not before a time: of the oldest window that holds it."""
        return t + (YEAR_ONE + self.offset - t) % self.epoch

    def last_end(self, t: int) -> int:
        """Return the end of the newest window that holds a time."""
        return self.end_before(t + self.size)

    def windows_of(self, t: int) -> range:
        """Return the ends of all windows that hold a time, or a pane, oldest first."""
        return range(self.end_at_or_after(t), self.last_end(t) + 1, self.epoch)

    def pane_of(self, t: int) -> int:
        """Return the pane of a time.

        It is the next instant, at or after it, where a window ends or which is the last outside a
        window; the last one before the end of int64 is cut off there, so that it is an int64.
        """
        end = self.end_at_or_after(t)
        start = t + (YEAR_ONE + self.offset - self.size - t) % self.epoch
        return min(end, start, _MAX_TIME_NS)

    def starts_of(self, end: int) -> tuple[int, ...]:
        """Return the starts of the windows with an end: the panes of each are in (start, end]."""
        return (end - self.size,)

    def index_of(self, end: int) -> int:
        """Return the number of an end: how many epochs it lies after year 1 and the offset."""
        return (end - YEAR_ONE - self.offset) // self.epoch


@dataclass(frozen=True, slots=True)
class Slices:
    """Panes of one width, for windows that lie where the events are; they only find messages again.

    Attributes:
        width: ns, > 0.
    """

    width: int

    def pane_of(self, t: int) -> int:
        """Return the last instant of the slice of a time."""
        return min(t - t % self.width + self.width - 1, _MAX_TIME_NS)
