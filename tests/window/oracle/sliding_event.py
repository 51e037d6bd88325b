"""`sliding_window`, `mode: event` (eKuiper): every event looks back at once."""

from __future__ import annotations

from tests.window.oracle.driver import Window
from tests.window.oracle.events import Emitted
from tests.window.oracle.intake import Arrived
from tests.window.oracle.sliding import SlidingOracle


class EventOracle(SlidingOracle):
    """Nothing stays open, so that neither `emit`, nor idleness, nor the end has a say in it."""

    def take(self, arrived: Arrived) -> list[Window] | None:
        start, end = arrived.time - self.rules.size, arrived.time
        window = Window(arrived.key, start, end)
        if self.is_shut(window, arrived.clock):  # its time < clock - allowed_lateness
            return None
        self.kept.append(arrived)
        window.inside = [
            other for other in self.kept if other.key == arrived.key and start <= other.time <= end
        ]
        return [window]

    def at_once(self, changed: list[Window]) -> list[Emitted]:
        return [self.shown(window, "event") for window in changed]
