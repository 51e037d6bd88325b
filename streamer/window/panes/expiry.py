"""Windows that were dropped under back pressure, as far as that still matters.

A message of a sliding window counts as expired only when none of its windows was emitted, so the
ends of dropped windows are remembered while a message of theirs is held.
"""

from __future__ import annotations

from streamer.window.settings.grid import Grid
from streamer.window.state.pane_index import Pane, PaneHead


def note_expired(head: PaneHead, grid: Grid, end: int) -> None:
    """Remember that a window was dropped; ends come in their order."""
    if head.expired and head.expired[-1][1] == end - grid.epoch:
        head.expired[-1][1] = end
    else:
        head.expired.append([end, end])


def prune_expired(head: PaneHead, grid: Grid) -> None:
    """Forget the windows of which nothing can be held any more."""
    if head.horizon is not None:
        oldest = head.horizon - grid.size
        head.expired = [run for run in head.expired if run[1] > oldest]


def count_emitted(pane: Pane, head: PaneHead, grid: Grid) -> int:
    """Return how many messages of a pane were emitted, all its windows being closed.

    They are the first ones in order of arrival: who came later had no windows that who came before
    did not have.
    """
    windows = [end for end in grid.windows_of(pane.pane) if not _is_expired(head, end)]
    newest = max(windows, default=None)
    if newest is None:
        return 0
    return sum(count for closed_until, count in pane.runs if newest > closed_until)


def _is_expired(head: PaneHead, end: int) -> bool:
    return any(first <= end <= last for first, last in head.expired)
