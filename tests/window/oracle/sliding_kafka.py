"""`sliding_window`, `mode: kafka`: windows that end at an event, and that begin just after one."""

from __future__ import annotations

from dataclasses import dataclass

from tests.window.oracle.driver import Window
from tests.window.oracle.intake import Arrived
from tests.window.oracle.sliding import Sliding, SlidingOracle

MS = 10**6


@dataclass(frozen=True, kw_only=True)
class KafkaSliding(Sliding):
    """Times are whole milliseconds: those of events, and T as a clock, are rounded down."""

    # Decided: max_ahead looks at the times as they are, before they are rounded.

    @property
    def unit(self) -> int:
        return MS


class KafkaOracle(SlidingOracle):
    """Decided: an event is late when no open window holds it.

    Its windows are its own left one, those there are, and the right ones of earlier messages that
    it makes come to be; not its own right one, which begins after it, nor windows that events yet
    to come might open around it.
    """

    def take(self, arrived: Arrived) -> list[Window] | None:
        joined = self.open_around(arrived)
        earlier = {a.time for a in self.kept if a.key == arrived.key and a.time < arrived.time}
        self.kept.append(arrived)
        starts = {arrived.time - self.rules.size}  # its left window
        starts |= {
            time + MS
            for time in earlier
            if time + MS <= arrived.time <= time + MS + self.rules.size
        }
        opened = [window for start in starts for window in self.opened(arrived, start)]
        if not joined and not opened:
            self.kept.remove(arrived)
            return None
        for window in joined:
            window.inside.append(arrived)
        # Its right window, when it comes before messages that fall into it.
        opened += self.opened(arrived, arrived.time + MS)
        self.open += opened
        return joined + opened
