"""Count windows: no time at all, every message of a key counts."""

from __future__ import annotations

from streamer.window.contract.emission import WindowReason
from streamer.window.keyed.state import FOREVER, KeyState, Window


class CountRules:
    """The rules; see `rules.Rules`. Times are arrival numbers here."""

    unit = 1
    tracks_closed = False
    per_event_reason: WindowReason = "count"
    non_overlapping = False
    count_based = True
    mergeable = False

    def __init__(self, count: int, every: int) -> None:
        self._count = count
        self._every = every

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Count a message; return a window of the latest ones if one comes out."""
        state.total += 1
        if state.total >= self._first_needed_number:
            state.marks.append((arrival, arrival))
        if state.total % self._every or state.total < self._count:
            return []
        latest = state.marks[-self._count :]
        # What the next output cannot hold any more is let go of.
        rest = self._count - self._every
        state.marks = latest[-rest:] if rest else []
        return [Window(latest[0][0], latest[-1][0], arrival, len(latest), active)]

    @property
    def _first_needed_number(self) -> int:
        """The number of the first message that the first output holds."""
        first = -(-self._count // self._every) * self._every
        return first - self._count + 1

    def incomplete_arrivals(self, state: KeyState) -> list[int]:
        """Return the arrivals of messages that never came out."""
        if state.total < self._count:
            return [arrival for _, arrival in state.marks]
        since = state.total % self._every
        if state.total < self._first_needed_number + self._count - 1:
            since = len(state.marks)
        return [arrival for _, arrival in state.marks[len(state.marks) - since :]]

    def is_passed_over(self, total: int) -> bool:
        """Tell whether a message that is the `total`th of its key is in no output."""
        return total < self._first_needed_number

    def close_time(self, window: Window) -> int:
        """A count window comes out when it is full; no clock closes it."""
        return FOREVER

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the first and the last arrival."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Messages are kept by the record's marks."""
        return None
