"""Windows that follow event times: their settings as a whole, and how a shard goes about them.

Where all keys share one clock and a window is emitted once, at its close, a shard need not know
its keys: whole panes close at a time (`panes`). All else is decided key by key (`keys`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from streamer.core.durations import MILLISECOND, SECOND
from streamer.window.settings.day_grid import DayGrid
from streamer.window.settings.grid import YEAR_ONE, Grid, Slices
from streamer.window.settings.local_days import LocalDays
from streamer.window.settings.window_types import (
    EventTimeSettings,
    Join,
    Session,
    Sliding,
    Tumbling,
    WindowType,
)

_MIN_SLICE_NS: Final = SECOND
_MAX_SLICE_NS: Final = 2**63 - 1

WINDOW_KEY_ID: Final = 1
"""The key id of a window's own keys, which are values: a key_mapping said otherwise goes on with
the windows that are open."""


@dataclass(frozen=True)
class EventWindow:
    """The settings of an event-time buffer; build one only of settings without problems.

    Attributes:
        kind: which windows there are.
        time: the settings that all kinds share.
        keyed: whether a `key_mapping` gives each message a key.
    """

    kind: WindowType
    time: EventTimeSettings = EventTimeSettings()
    keyed: bool = False

    @property
    def strategy(self) -> Literal["panes", "keys"]:
        """How a shard goes about them."""
        time = self.time
        shared = time.clock_scope == "stream" and time.idle_timeout is None
        if isinstance(self.kind, Tumbling) and shared and time.emit == "final":
            return "panes"
        return "keys"

    @property
    def end_of_input(self) -> str:
        """What becomes of open windows when a bounded input has ended."""
        return self.time.end_of_input

    @cached_property
    def fingerprint(self) -> str:
        """What state is bound to: a checkpoint with another one cannot be continued."""
        scope = f",{self.time.clock},{self.time.clock_scope}"
        return f"{self.kind.fingerprint}{scope},{self.strategy}{',keyed' if self.keyed else ''}"

    @cached_property
    def days(self) -> LocalDays | None:
        """The local days that windows of a time zone are counted in."""
        if isinstance(self.kind, Tumbling) and self.kind.timezone is not None:
            return LocalDays(self.kind.timezone, self.kind.offset)
        return None

    @cached_property
    def grid(self) -> Grid | DayGrid:
        """The grid of windows [start, end), whose ends are named by their last instant."""
        kind = self.kind
        assert isinstance(kind, Tumbling)
        if self.days is not None:
            return DayGrid(self.days, kind.every_days, kind.size_days)
        return Grid(kind.every, kind.size, (kind.offset + kind.size - 1 - YEAR_ONE) % kind.every)

    @property
    def panes(self) -> Grid | DayGrid | Slices:
        """The stretches of time by which stage 1 packs messages."""
        return self.grid if self.strategy == "panes" else self.slices

    @property
    def epoch(self) -> int:
        """About how far apart the panes of windows on a grid are, ns."""
        assert isinstance(self.kind, Tumbling)
        return self.kind.every

    def close_time(self, end: int) -> int:
        """Return the clock at which a window closes, whose last instant is `end`."""
        return end + 1 + self.time.allowed_lateness

    def closed_until(self, clock: int) -> int:
        """Return the newest end that a clock has closed, by its last instant."""
        return self.grid.end_at_or_before(clock - 1 - self.time.allowed_lateness)

    def first_close_time(self, pane: int) -> int:
        """Return the clock at which the first window of a pane closes."""
        return self.close_time(self.grid.end_at_or_after(pane))

    def due_count(self, t: int) -> int:
        """Return a number that grows with time, ns; it stands for the windows due by then."""
        return t // MILLISECOND

    @cached_property
    def slices(self) -> Slices:
        """The panes of windows that are decided key by key."""
        kind = self.kind
        if isinstance(kind, Session):
            return Slices(max(kind.gap, _MIN_SLICE_NS))
        if isinstance(kind, Sliding):
            return Slices(max(kind.size, _MIN_SLICE_NS))
        if isinstance(kind, Join):
            return Slices(max(kind.after, kind.before, _MIN_SLICE_NS))
        if isinstance(kind, Tumbling):
            return Slices(max(kind.every, _MIN_SLICE_NS))
        return Slices(_MAX_SLICE_NS)
