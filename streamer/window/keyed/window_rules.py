"""The rules by which the kinds of windows differ; all else in this package is common to them."""

from __future__ import annotations

from typing import Protocol

from streamer.window.contract import WindowReason
from streamer.window.keyed.counting import CountRules, StateRules
from streamer.window.keyed.hopping import HoppingRules
from streamer.window.keyed.session import LimitedSessionRules, MessageGapRules, SessionRules
from streamer.window.keyed.sliding import ForwardSlidingRules, KafkaSlidingRules
from streamer.window.keyed.sliding_per_event import PerEventSlidingRules, WaitingSlidingRules
from streamer.window.keyed.state import KeyState, Window
from streamer.window.keyed.unbounded import UnboundedRules
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import (
    Count,
    Global,
    KeyedMessages,
    Session,
    Sliding,
    State,
    Tumbling,
)


class WindowRules(Protocol):
    """The rules of a window kind."""

    @property
    def unit(self) -> int:
        """Clocks are rounded down to multiples of it, ns."""

    @property
    def tracks_closed(self) -> bool:
        """Whether the bounds of a window that closed early (idle, flush) stay in the record."""

    @property
    def per_event_reason(self) -> WindowReason | None:
        """Reason of the batches that an event emits at once; None if the kind emits none so."""

    @property
    def non_overlapping(self) -> bool:
        """Whether a message is in one window only."""

    @property
    def count_based(self) -> bool:
        """Whether windows know no time; arrival numbers stand for times then."""

    @property
    def unbounded(self) -> bool:
        """Whether windows never end, and have no bounds in metadata."""

    @property
    def mergeable(self) -> bool:
        """Whether two windows of a key may become one."""

    def assign(
        self, state: KeyState, time: int, arrival: int, watermark: int, active: int
    ) -> list[Window] | None:
        """Assign an event to its windows.

        Args:
            state: the record of its key; it is changed.
            time: the event time, ns.
            arrival: the arrival number.
            watermark: the watermark before the event, ns; `NEVER` before the first one.
            active: the running time of the stream, which idle timeouts are measured by, ns.

        Returns:
            The windows that the event has changed; None if it is late.
        """

    def close_time(self, window: Window) -> int:
        """Return the least watermark that closes a window, ns."""

    def message_bounds(self, window: Window) -> tuple[int, int]:
        """Return the range of times of a window's messages, both bounds inclusive."""

    def needed_from(self, clock: int) -> int | None:
        """Return the least time of messages kept for windows yet to open; None if none are."""


def make_rules(window: EventWindow) -> WindowRules:
    """Create the rules of a buffer's window kind."""
    kind, lateness = window.kind, window.time.allowed_lateness
    if isinstance(kind, Tumbling):
        return HoppingRules(window, lateness)
    if isinstance(kind, Session):
        rules = MessageGapRules if kind.by_message else SessionRules
        if kind.max_count is not None:
            rules = LimitedSessionRules
        return rules(kind, lateness)
    if isinstance(kind, Count):
        return CountRules(kind)
    if isinstance(kind, State):
        return StateRules(kind)
    if isinstance(kind, Global):
        return UnboundedRules()
    if isinstance(kind, KeyedMessages):
        return PerEventSlidingRules(Sliding(0, "event"), lateness)
    if isinstance(kind, Sliding) and kind.mode == "event":
        per_event = WaitingSlidingRules if kind.waits else PerEventSlidingRules
        return per_event(kind, lateness)
    if isinstance(kind, Sliding):
        slides = KafkaSlidingRules if kind.mode == "kafka" else ForwardSlidingRules
        return slides(kind.size, lateness)
    raise TypeError(f"no rules for {kind!r}")
