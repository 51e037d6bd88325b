"""Panes of event-time windows: the stretches of time in which stage 1 packs messages together.

A pane is named by its last instant. Windows on a grid have the grid's panes (`Grid`); windows
that lie where the events are have slices of one width, for no more than finding messages again.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from streamer.window.settings.day_grid import DayGrid
from streamer.window.settings.grid import YEAR_ONE, Grid, Slices
from streamer.window.settings.int_codec import Ints

_MAX_ARITHMETIC_TIME_NS: Final = 2**62


class Panes(Protocol):
    """Gives an event time its pane."""

    def pane_of(self, t: int) -> int:
        """Return the pane of a time, ns."""


def panes_of_times(panes: Panes, times: Ints) -> Ints:
    """Return the panes of many times."""
    # Arithmetic on times that are further out might leave int64.
    near = not len(times) or (
        int(times.min()) > -_MAX_ARITHMETIC_TIME_NS and int(times.max()) < _MAX_ARITHMETIC_TIME_NS
    )
    if near and isinstance(panes, Slices):
        return times - times % panes.width + (panes.width - 1)
    if near and isinstance(panes, Grid):
        return _compute_grid_panes(panes, times)
    if isinstance(panes, DayGrid):
        return panes.panes_of_times(times)
    distinct, places = np.unique(times, return_inverse=True)
    distinct_panes = np.array([panes.pane_of(t) for t in distinct.tolist()], np.int64)
    return distinct_panes[places]


def _compute_grid_panes(grid: Grid, times: Ints) -> Ints:
    ends = times + ((YEAR_ONE + grid.offset) % grid.epoch - times) % grid.epoch
    if grid.size % grid.epoch == 0:
        return ends
    starts = times + ((YEAR_ONE + grid.offset - grid.size) % grid.epoch - times) % grid.epoch
    nearest: Ints = np.minimum(ends, starts)
    return nearest
