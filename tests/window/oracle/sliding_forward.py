"""`sliding_window`, `mode: forward` (KIP-450): a window from every distinct event time on."""

from __future__ import annotations

from tests.window.oracle.driver import Window
from tests.window.oracle.intake import Arrived
from tests.window.oracle.sliding import SlidingOracle


class ForwardOracle(SlidingOracle):
    def take(self, arrived: Arrived) -> list[Window] | None:
        joined = self.open_around(arrived)
        self.kept.append(arrived)
        opened = self.opened(arrived, arrived.time)
        if not joined and not opened:
            self.kept.remove(arrived)
            return None
        for window in joined:
            window.inside.append(arrived)
        self.open += opened
        return joined + opened
