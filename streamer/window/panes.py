"""Panes of event-time windows: the stretches of time in which stage 1 packs messages together.

A pane is named by its last instant. Windows on a grid have the grid's panes (`grid.Grid`); windows
that lie where the events are have slices of one width, for no more than finding messages again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from streamer.window.ints import Ints

LAST: Final = 2**63 - 1
_NEAR: Final = 2**62


class Panes(Protocol):
    """Gives each event time its pane."""

    def pane_of(self, t: int) -> int:
        """Return the pane of a time, ns."""

    def panes_of_times(self, times: Ints) -> Ints:
        """Return the panes of many times."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Panes of one width, one after another.

    Attributes:
        width: ns, > 0.
    """

    width: int

    def pane_of(self, t: int) -> int:
        """Return the last instant of the slice of a time."""
        return min(t - t % self.width + self.width - 1, LAST)

    def panes_of_times(self, times: Ints) -> Ints:
        """Return the last instants of the slices of many times."""
        if far(times):
            return one_by_one(self, times)
        found: Ints = times - times % self.width + (self.width - 1)
        return found


def far(times: Ints) -> bool:
    """Tell whether arithmetic on times might leave int64."""
    return bool(len(times)) and (int(times.min()) < -_NEAR or int(times.max()) > _NEAR)


def one_by_one(panes: Any, times: Ints) -> Ints:
    """Return the panes of times with integers that know no bounds."""
    found = [panes.pane_of(t) for t in times.tolist()]
    return np.array(found, np.int64)
