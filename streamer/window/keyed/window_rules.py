"""What a kind of window has to say, key by key; the rest is the same for all of them."""

from __future__ import annotations

from typing import Protocol

from streamer.window.contract.emission import WindowReason
from streamer.window.keyed.counting import CountRules
from streamer.window.keyed.hopping import HoppingRules
from streamer.window.keyed.session import SessionRules
from streamer.window.keyed.sliding import ForwardSlidingRules, KafkaSlidingRules
from streamer.window.keyed.sliding_per_event import PerEventSlidingRules
from streamer.window.keyed.state import KeyState, Window
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Count, Session, Sliding, Tumbling


class WindowRules(Protocol):
    """The rules of a kind.

    Attributes:
        unit: clocks are rounded down to multiples of it, ns.
        tracks_closed: whether the bounds of a window that closed before its time are remembered.
        per_event_reason: why an event makes a batch come out at once; None when none does so by
            itself.
        non_overlapping: whether a message is in one window only.
        count_based: whether windows know no time; what is said of times is then said of arrivals.
        mergeable: whether windows of a key may become one.
    """

    @property
    def unit(self) -> int:
        """See above."""

    @property
    def tracks_closed(self) -> bool:
        """See above."""

    @property
    def per_event_reason(self) -> WindowReason | None:
        """See above."""

    @property
    def non_overlapping(self) -> bool:
        """See above."""

    @property
    def count_based(self) -> bool:
        """See above."""

    @property
    def mergeable(self) -> bool:
        """See above."""

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Put an event into its windows.

        Args:
            state: of its key; it is changed.
            time: its event time, ns.
            arrival: its arrival number.
            watermark: the clock before it; `NEVER` when there was none.
            active: the running time, by which idleness is told.

        Returns:
            The windows that it changes; None when it is late.
        """

    def close_time(self, window: Window) -> int:
        """Return the least clock that closes a window."""

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return between which times its messages lie, both inclusive; arrivals without time."""

    def needed_from(self, clock: int) -> int | None:
        """Return from where on messages are kept for windows yet to come; None for nowhere."""


def make_rules(window: EventWindow) -> WindowRules:
    """Return the rules of a buffer's kind."""
    kind, lateness = window.kind, window.time.allowed_lateness
    if isinstance(kind, Tumbling):
        return HoppingRules(window, lateness)
    if isinstance(kind, Session):
        return SessionRules(kind.gap, kind.max_duration, lateness)
    if isinstance(kind, Count):
        return CountRules(kind.count, kind.every)
    if isinstance(kind, Sliding) and kind.mode == "event":
        return PerEventSlidingRules(kind.size, lateness)
    if isinstance(kind, Sliding):
        slides = KafkaSlidingRules if kind.mode == "kafka" else ForwardSlidingRules
        return slides(kind.size, lateness)
    raise TypeError(f"no rules for {kind!r}")
