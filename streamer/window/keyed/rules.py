"""What a kind of window has to say, key by key; the rest is the same for all of them."""

from __future__ import annotations

from typing import Protocol

from streamer.window.emission import WindowReason
from streamer.window.event import EventWindow
from streamer.window.keyed.counts import Counts
from streamer.window.keyed.hops import Hops
from streamer.window.keyed.lookback import Lookback
from streamer.window.keyed.sessions import Sessions
from streamer.window.keyed.slides import ForwardSlides, KafkaSlides
from streamer.window.keyed.state import KeyState, Window
from streamer.window.kinds import Count, Session, Sliding, Tumbling


class Rules(Protocol):
    """The rules of a kind.

    Attributes:
        unit: clocks are rounded down to multiples of it, ns.
        remembers: whether the bounds of a window that closed before its time are remembered.
        at_once: why an event makes a batch come out at once; None when none does so by itself.
        disjoint: whether a message is in one window only.
        timeless: whether windows know no time; what is said of times is then said of arrivals.
        joins: whether windows of a key may become one.
    """

    @property
    def unit(self) -> int:
        """See above."""

    @property
    def remembers(self) -> bool:
        """See above."""

    @property
    def at_once(self) -> WindowReason | None:
        """See above."""

    @property
    def disjoint(self) -> bool:
        """See above."""

    @property
    def timeless(self) -> bool:
        """See above."""

    @property
    def joins(self) -> bool:
        """See above."""

    def take(
        self, state: KeyState, time: int, arrival: int, before: int, active: int
    ) -> list[Window] | None:
        """Put an event into its windows.

        Args:
            state: of its key; it is changed.
            time: its event time, ns.
            arrival: its arrival number.
            before: the clock before it; `NEVER` when there was none.
            active: the running time, by which idleness is told.

        Returns:
            The windows that it changes; None when it is late.
        """

    def closes_at(self, window: Window) -> int:
        """Return the least clock that closes a window."""

    def inside(self, window: Window) -> tuple[int, int]:
        """Return between which times its messages lie, both inclusive; arrivals without time."""

    def kept_from(self, clock: int) -> int | None:
        """Return from where on messages are kept for windows yet to come; None for nowhere."""


def rules_of(window: EventWindow) -> Rules:
    """Return the rules of a buffer's kind."""
    kind, lateness = window.kind, window.time.allowed_lateness
    if isinstance(kind, Tumbling):
        return Hops(window, lateness)
    if isinstance(kind, Session):
        return Sessions(kind.gap, kind.max_duration, lateness)
    if isinstance(kind, Count):
        return Counts(kind.count, kind.every)
    if isinstance(kind, Sliding) and kind.mode == "event":
        return Lookback(kind.size, lateness)
    if isinstance(kind, Sliding):
        slides = KafkaSlides if kind.mode == "kafka" else ForwardSlides
        return slides(kind.size, lateness)
    raise TypeError(f"no rules for {kind!r}")
