"""Rules of count windows: the latest `count` messages of a key, after every `every` messages."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.window.contract import WindowReason
from streamer.window.keyed.state import FOREVER, KeyState, Window
from streamer.window.settings.window_types import Count


class CountRules:
    """Rules of count windows, see `WindowRules`. Arrival numbers stand for times.

    The messages of a key are numbered from 1. A key's marks are the arrival numbers of messages
    that a later window holds: all of the latest ones, up to `KeyState.total`.
    """

    unit = 1
    tracks_closed = False
    per_event_reason: WindowReason = "count"
    non_overlapping = False
    count_based = True
    mergeable = False
    unbounded = False

    def __init__(self, settings: Count) -> None:
        self._settings = settings
        self.end_of_input = settings.end_of_input

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Count a message; return the window that it completes, if it completes one."""
        settings = self._settings
        state.total = total = state.total + 1
        end = settings.window_after(total - 1)
        if total > end - settings.count:
            state.marks.append((arrival, arrival))
        if total < end:
            return []
        window = self._make_window(state, end, active)
        # Messages that the next window cannot hold are forgotten.
        rest = total - max(settings.window_after(total) - settings.count, 0)
        state.marks = state.marks[-rest:] if rest > 0 else []
        return [window]

    def _make_window(self, state: KeyState, end: int, active: int) -> Window:
        """Make the window that the message of a number completes, of the messages that came."""
        first = max(end - self._settings.count, 0)
        inside = state.marks[first - state.total :]
        (low, _), (high, _) = inside[0], inside[-1]
        return Window(low, high, low, len(inside), active, offsets=(first, end))

    def begun_windows(self, state: KeyState, active: int) -> Iterator[Window]:
        """Give the windows that hold what is left at the end of the input, in order.

        Aligned at their starts, these are all that have begun. Else it is the next one alone, if
        it holds a message that no window had: those after it would only repeat its messages.
        """
        settings, total = self._settings, state.total
        end = settings.window_after(total)
        if settings.align == "start":
            while end - settings.count < total:
                yield self._make_window(state, end, active)
                end = settings.window_after(end)
        elif total > max(end - settings.count, settings.window_before(total)):
            yield self._make_window(state, end, active)

    def incomplete_arrivals(self, state: KeyState) -> list[int]:
        """Return the arrival numbers of kept messages that were in no window."""
        unseen = state.total - self._settings.window_before(state.total)
        return [arrival for _, arrival in state.marks[-unseen:]] if unseen else []

    def is_passed_over(self, total: int) -> bool:
        """Return whether the `total`th message of a key is in no window."""
        settings = self._settings
        return total <= settings.window_after(total - 1) - settings.count

    def close_time(self, window: Window) -> int:
        """Return `FOREVER`: a count window is emitted when it is full, and no clock closes it."""
        return FOREVER

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the first and the last arrival number."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return None: the marks of the record say which messages are kept."""
        return None
