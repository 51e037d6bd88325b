"""Rules of count windows: the latest `count` messages of a key, after every `every` messages."""

from __future__ import annotations

from streamer.window.contract import WindowReason
from streamer.window.keyed.state import FOREVER, KeyState, Window


class CountRules:
    """Rules of count windows, see `WindowRules`. Arrival numbers stand for times."""

    unit = 1
    tracks_closed = False
    per_event_reason: WindowReason = "count"
    non_overlapping = False
    count_based = True
    mergeable = False
    unbounded = False

    def __init__(self, count: int, every: int) -> None:
        self._count = count
        self._every = every

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Count a message; return the window of the latest ones if it is full, else no window."""
        state.total += 1
        if state.total >= self._first_needed_number:
            state.marks.append((arrival, arrival))
        if state.total % self._every or state.total < self._count:
            return []
        latest = state.marks[-self._count :]
        # Messages that the next window cannot hold are forgotten.
        rest = self._count - self._every
        state.marks = latest[-rest:] if rest else []
        return [Window(latest[0][0], latest[-1][0], arrival, len(latest), active)]

    @property
    def _first_needed_number(self) -> int:
        """The number of the first message that is in the first window."""
        first = -(-self._count // self._every) * self._every
        return first - self._count + 1

    def incomplete_arrivals(self, state: KeyState) -> list[int]:
        """Return the arrival numbers of messages that were in no window."""
        if state.total < self._count:
            return [arrival for _, arrival in state.marks]
        since = state.total % self._every
        if state.total < self._first_needed_number + self._count - 1:
            since = len(state.marks)
        return [arrival for _, arrival in state.marks[len(state.marks) - since :]]

    def is_passed_over(self, total: int) -> bool:
        """Return whether the `total`th message of a key is in no window."""
        return total < self._first_needed_number

    def close_time(self, window: Window) -> int:
        """Return `FOREVER`: a count window is emitted when it is full, and no clock closes it."""
        return FOREVER

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the first and the last arrival number."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return None: the marks of the record say which messages are kept."""
        return None
