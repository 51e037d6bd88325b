"""Rules of windows without times: of a number of messages, or from a condition to another."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.window.contract import WindowReason
from streamer.window.keyed.state import FOREVER, KeyState, Window
from streamer.window.pack.metadata_codec import BEGINS, EMITS
from streamer.window.settings.window_types import Count, State


class CountRules:
    """Rules of count windows, see `WindowRules`. Arrival numbers stand for times.

    The messages of a key are numbered from 1. A key's marks are the arrival numbers of messages
    that a later window holds: all of the latest ones, up to `KeyState.total`.

    Attributes:
        conditions: bits of the conditions that hold for the message that is assigned next.
        is_conditional: whether a window needs a message for which a condition holds.
        passed_over: arrival numbers of messages that no window holds, since the last assignment.
    """

    unit = 1
    tracks_closed = False
    per_event_reason: WindowReason = "count"
    conditions = 0
    non_overlapping = False
    count_based = True
    mergeable = False
    unbounded = False

    def __init__(self, settings: Count) -> None:
        self._settings = settings
        self.end_of_input = settings.end_of_input
        self.is_conditional = settings.conditional
        self.passed_over: list[int] = []

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Count a message; return the window that it completes, if it completes one."""
        settings = self._settings
        state.total = total = state.total + 1
        if settings.conditional:
            return self._assign_conditional(state, arrival, active)
        end = settings.window_after(total - 1)
        if total > end - settings.count:
            state.marks.append((arrival, arrival))
        else:
            self.passed_over.append(arrival)
        if total < end:
            return []
        window = self._make_window(state, end, active)
        # Messages that the next window cannot hold are forgotten.
        rest = total - max(settings.window_after(total) - settings.count, 0)
        state.marks = state.marks[-rest:] if rest > 0 else []
        return [window]

    def _assign_conditional(self, state: KeyState, arrival: int, active: int) -> list[Window]:
        """Count a message; return the window that ends with it, if it is due and may be emitted."""
        settings, total = self._settings, state.total
        state.marks.append((arrival, arrival))
        windows = []
        is_due = total >= self._window_after(state, total - 1)
        if is_due and self.conditions & EMITS:
            windows.append(self._make_window(state, total, active))
            state.cadence_start = total
        # Messages that the next window cannot hold are forgotten.
        rest = total - max(self._window_after(state, total) - settings.count, 0)
        gone = state.marks[: max(len(state.marks) - rest, 0)]
        first = total - len(state.marks) + 1
        last_window = self._last_window(state)
        self.passed_over += [
            mark for number, (mark, _) in enumerate(gone, first) if number > last_window
        ]
        del state.marks[: len(gone)]
        return windows

    def _last_window(self, state: KeyState) -> int:
        """Return the number of the message that has completed the latest window; 0 without one."""
        if self._settings.conditional:
            return state.cadence_start or 0
        return self._settings.window_before(state.total)

    def _window_after(self, state: KeyState, total: int) -> int:
        """Return the number of the message that completes the next window, at the earliest."""
        settings = self._settings
        if not settings.conditional:
            return settings.window_after(total)
        next_due = (state.cadence_start or 0) + settings.every
        return max(total + 1, next_due, settings.least_count)

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
        end = self._window_after(state, total)
        if settings.align == "start":
            while end - settings.count < total:
                yield self._make_window(state, end, active)
                end = settings.window_after(end)
        elif total > max(end - settings.count, self._last_window(state)):
            yield self._make_window(state, end, active)

    def incomplete_arrivals(self, state: KeyState) -> list[int]:
        """Return the arrival numbers of kept messages that were in no window."""
        unseen = state.total - self._last_window(state)
        return [arrival for _, arrival in state.marks[-unseen:]] if unseen else []

    def take_passed_over(self) -> list[int]:
        """Return the messages that no window holds, since this was called before."""
        taken, self.passed_over = self.passed_over, []
        return taken

    def close_time(self, window: Window) -> int:
        """Return `FOREVER`: a count window is emitted when it is full, and no clock closes it."""
        return FOREVER

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the first and the last arrival number."""
        return window.start, window.end

    def needed_from(self, clock: int) -> int | None:
        """Return None: the marks of the record say which messages are kept."""
        return None


class StateRules(CountRules):
    """Rules of windows from a condition to another; see `WindowRules`. Source: eKuiper.

    A key's marks are the arrival numbers of the messages of its open window.
    """

    per_event_reason: WindowReason = "event"

    def __init__(self, settings: State) -> None:
        super().__init__(Count(1, 1, end_of_input=settings.end_of_input, conditional=True))
        self._single = settings.single

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Add a message to the open window, or begin one; return the window that it ends."""
        begins = bool(self.conditions & BEGINS)
        mark = (arrival, arrival)
        if not state.marks:
            if begins:
                state.marks = [mark]
            else:
                self.passed_over.append(arrival)
            return []
        if self._single:
            if not begins:
                state.marks.append(mark)
                return []
            window = self._window_of(state, active)
            state.marks = [mark]
            return [window]
        state.marks.append(mark)
        if not self.conditions & EMITS:
            return []
        window = self._window_of(state, active)
        state.marks = []
        return [window]

    def begun_windows(self, state: KeyState, active: int) -> Iterator[Window]:
        """Give the window that has begun, if there is one."""
        if state.marks:
            yield self._window_of(state, active)

    def incomplete_arrivals(self, state: KeyState) -> list[int]:
        """Return the arrival numbers of the messages of the open window."""
        return [arrival for _, arrival in state.marks]

    def _window_of(self, state: KeyState, active: int) -> Window:
        (low, _), (high, _) = state.marks[0], state.marks[-1]
        return Window(low, high, low, len(state.marks), active)
