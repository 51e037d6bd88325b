"""Compares a number of a window with those of the windows before it, kept in the state by key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from streamer.connectors.expectations.values import as_number
from streamer.core.keyed_state import MISSING, KeyedState
from streamer.core.message import Message

STATISTICS: Final = ("mean", "median")
MAX_WINDOWS: Final = 1_000
"""Windows that one expectation compares with at most; their numbers are read for each window."""

_WINDOW_START: Final = "window_start_timestamp"
_MAX_EXACT: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class History:
    """The comparison of a number with the last windows of the same key.

    Attributes:
        state_name: names the numbers in the state by key.
        windows: how many windows are compared with.
        statistic: the statistic of their numbers, one of `STATISTICS`.
        min_ratio: the least number, as a ratio of the statistic; None for no bound.
        max_ratio: the largest one, likewise.
        min_windows: fewer windows than these are not compared with.
    """

    state_name: str
    windows: int
    statistic: str
    min_ratio: float | None
    max_ratio: float | None
    min_windows: int

    def compare(
        self, number: float, first: Message, state: KeyedState, group: str = ""
    ) -> str | None:
        """Compare the number of a window with those before it, and keep it.

        A window that is emitted again takes the place of its earlier number, and is not compared
        with itself.

        Args:
            number: finite.
            first: the first message of the window.
            state: of the window's key.
            group: the group of the window that the number is of; empty for the window itself.

        Returns:
            Why the number fails, in a few words; None if it passes.

        Raises:
            MessageError: the message has no key.
        """
        kept = state.get(self.state_name, group)
        entries: list[list[Any]] = [] if kept is MISSING else [list(entry) for entry in kept]
        identity = _identify_window(first)
        place = next((i for i, (of, _) in enumerate(entries) if of and of == identity), None)
        others = [one for i, (_, one) in enumerate(entries) if i != place][-self.windows :]
        reason = self._find_reason(number, others)
        is_exact = isinstance(number, int) and abs(number) < _MAX_EXACT
        entry = [identity, number if is_exact else float(number)]
        if place is None:
            entries.append(entry)
        else:
            entries[place] = entry
        # One more than are compared with: the newest may come again, and is then left out.
        state.put(self.state_name, entries[-(self.windows + 1) :], group)
        return reason

    def _find_reason(self, number: float, others: list[float]) -> str | None:
        if len(others) < self.min_windows or not others:
            return None
        usual = (fmean if self.statistic == "mean" else median)(others)
        low = None if self.min_ratio is None else self.min_ratio * usual
        high = None if self.max_ratio is None else self.max_ratio * usual
        if usual < 0:
            low, high = high, low
        of = f"the {self.statistic} {usual:.6g} of the last {len(others)} windows"
        if low is not None and number < low:
            return f"{number:.6g} is less than {low:.6g}, by {of}"
        if high is not None and number > high:
            return f"{number:.6g} is more than {high:.6g}, by {of}"
        return None


def check_finite(value: Any) -> float | None:
    """Return a value as a number that can be kept; None for what is none, or not finite."""
    number = as_number(value)
    try:
        return number if number is not None and math.isfinite(number) else None
    except OverflowError:  # an integer beyond all floats
        return None


def _identify_window(first: Message) -> str:
    """Return the beginning of a window, the same when it is emitted again; empty without bounds."""
    return str(first.meta.get(_WINDOW_START) or "")
