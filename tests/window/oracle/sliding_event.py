"""`sliding_window`, `mode: event` (eKuiper, Tenzir): every event looks back, at once or later."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tests.window.oracle.driver import Window, WindowOracle, in_order
from tests.window.oracle.events import Emitted, MicroBatch
from tests.window.oracle.intake import Arrived, Clocks
from tests.window.oracle.sliding import Sliding, SlidingOracle


@dataclass(frozen=True, kw_only=True)
class EventSliding(Sliding):
    """With `waits`, a window waits until the clock is at its end; `closed` names its bounds."""

    delay: int = 0
    waits: bool = False
    conditional: bool = False
    every: int | None = None
    closed: str = "both"


@dataclass(eq=False)
class EventWindow(Window):
    """The window of one event."""

    opener: Arrived = field(kw_only=True)

    @property
    def order(self) -> tuple[int, int, int]:
        """By end, then by the arrival of the event itself."""
        return self.end, self.opener.number, self.start


class EventOracle(SlidingOracle):
    """Neither `emit`, nor, where nothing waits, idleness or the end has a say in it."""

    remembers = False

    def __init__(self, rules: EventSliding) -> None:
        super().__init__(rules)
        self.event_rules = rules
        # The event that the cadence of a key counts from.
        self.cadence: dict[Hashable, int] = {}

    def take(self, arrived: Arrived) -> list[Window] | None:
        rules = self.event_rules
        if arrived.clock is not None and arrived.time < arrived.clock - rules.allowed_lateness:
            return None
        self.kept.append(arrived)
        window = EventWindow(
            arrived.key, arrived.time - rules.size, arrived.time + rules.delay, opener=arrived
        )
        if rules.waits:
            self.open.append(window)
            return [window]
        return [window] if self.is_due(window) else []

    def is_past(self, window: Window, clock: int) -> bool:
        return clock >= window.end + self.rules.allowed_lateness

    def is_due(self, window: EventWindow) -> bool:
        """Whether the event emits its window, which then begins the next cadence."""
        rules, opener = self.event_rules, window.opener
        emits = not rules.conditional or opener.event.emits is True
        if rules.every is None:
            return emits
        if opener.key not in self.cadence:
            self.cadence[opener.key] = opener.time
            return False
        if not emits or opener.time < self.cadence[opener.key] + rules.every:
            return False
        self.cadence[opener.key] = opener.time
        return True

    def at_once(self, changed: list[Window]) -> list[Emitted]:
        if self.event_rules.waits:
            return []
        return [self._filled(window, "event") for window in changed]

    def _close(self, batch: MicroBatch, before: Clocks) -> list[Emitted]:
        out = []
        for window in in_order(self.open):
            assert isinstance(window, EventWindow)
            reason = self._reason(window, batch)
            if reason is None:
                continue
            self.open.remove(window)
            if self.is_due(window):
                out.append(self._filled(window, reason))
        if batch.ended and self.fields.end_of_input == "flush":
            # Decided: should the input grow after all, a cadence begins afresh.
            self.cadence = {}
        return out

    def _reason(self, window: Window, batch: MicroBatch) -> str | None:
        assert isinstance(window, EventWindow)
        # Decided: idleness counts from the event whose window it is.
        window.active = window.opener.active
        window.inside = [window.opener]
        return super()._reason(window, batch)

    def _filled(self, window: Window, reason: str) -> Emitted:
        """The window with its messages, as a batch."""
        assert isinstance(window, EventWindow)
        window.inside = [other for other in self.kept if self._holds(window, other)]
        return self.shown(window, reason)

    def _holds(self, window: EventWindow, other: Arrived) -> bool:
        opener = window.opener
        if other.key != opener.key or not window.start <= other.time <= window.end:
            return False
        closed = self.event_rules.closed
        if other.time == window.start and closed not in ("both", "left"):
            return False
        if other.time == window.end and closed not in ("both", "right"):
            return False
        if other.number <= opener.number:
            return True
        # Decided: without a delay, the events of a time are in order of arrival, and each looks
        # back; with one, what comes when the clock is at the end is too late for the window.
        if window.end == opener.time:
            return other.time < opener.time
        return other.clock is None or not self.is_past(window, other.clock)

    def may_need(self, arrived: Arrived, clock: int) -> bool:
        """Whether a window that holds the message is open, or may be opened."""
        waiting = any(w.key == arrived.key and w.start <= arrived.time for w in self.open)
        return waiting or super().may_need(arrived, clock)

    def held(self) -> set[str]:
        """Nothing waits that an oracle of other kinds would ask for."""
        return WindowOracle.held(self)
