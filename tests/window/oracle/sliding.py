"""What the three modes of `sliding_window` share: both bounds inclusive, closed past the end."""

from __future__ import annotations

from dataclasses import dataclass

from tests.window.oracle.driver import Window, WindowOracle
from tests.window.oracle.intake import Arrived, Fields


@dataclass(frozen=True, kw_only=True)
class Sliding(Fields):
    size: int


class SlidingOracle(WindowOracle):
    def __init__(self, rules: Sliding) -> None:
        super().__init__(rules)
        self.rules = rules

    def is_past(self, window: Window, clock: int) -> bool:
        return window.end < clock - self.rules.allowed_lateness

    def may_need(self, arrived: Arrived, clock: int) -> bool:
        """Whether a window that holds the message, or begins just after it, may yet be opened."""
        # Decided: messages are kept for windows yet to be opened even when idleness, or the end of
        # the input, has closed all that hold them by now: a window holds every accepted message of
        # its key inside its bounds. (That "its bounds alone are remembered" is about the window.)
        newest = arrived.time + self.rules.unit + self.rules.size
        return newest + self.rules.allowed_lateness >= clock

    def open_around(self, arrived: Arrived) -> list[Window]:
        """The windows there are that take the event."""
        return [
            window
            for window in self.open
            if window.key == arrived.key
            and window.start <= arrived.time <= window.end
            and not self.is_shut(window, arrived.clock)
        ]

    def opened(self, arrived: Arrived, start: int) -> list[Window]:
        """The window that begins at `start` if the event opens it: with all that it holds so far.

        Decided: a message is in a window when the window is open by the clock before the message,
        whichever of the two was there first. (With one partition that holds for all that came
        before the window.)
        """
        window = Window(arrived.key, start, start + self.rules.size, active=arrived.active)
        bounds = (window.start, window.end)
        if self.is_shut(window, arrived.clock):
            return []
        if any(w.key == window.key and (w.start, w.end) == bounds for w in self.open):
            return []
        window.inside = [
            other
            for other in self.kept
            if other.key == window.key
            and window.start <= other.time <= window.end
            and not (other.clock is not None and self.is_past(window, other.clock))
        ]
        return [window] if window.inside else []
