"""A canary without Spark: a test says what it has compared, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.engine.canary.emissions import ResultRow, WindowIdentity
from streamer.engine.canary.window_comparison import WindowComparison
from streamer.service.fleet import canaries
from streamer.service.run.canary_run import CanarySettings, Outcome
from tests.service.fleet.pretending import PretendedRun

SECOND = 10**9


class PretendedCanaryRun:
    """Takes the place of `CanaryRun`."""

    newest: PretendedCanaryRun

    def __init__(
        self,
        host: Any,
        plan: Any,
        directory: Path,
        settings: CanarySettings,
        log: Any,
        *,
        moves_closes: bool = False,
    ) -> None:
        self.plan, self.directory, self.settings = plan, directory, settings
        self.moves_closes = moves_closes
        self.comparison = WindowComparison()
        self.outcome: Outcome | None = None
        self.reason = ""
        self.has_started = False
        self.micro_batches_behind = 0
        self.on_end: Any = lambda run: None
        type(self).newest = self

    def start(self) -> None:
        self.has_started = True

    def request_stop(self) -> None:
        pass

    def stop(self, timeout: float = 30.0) -> None:
        if self.outcome is None:
            self.end(Outcome.DROPPED)

    def compare(self, windows: int, different: int) -> None:
        """Compare so many windows, of which the first ones differ."""
        for number in range(windows):
            window = WindowIdentity(0, "k", '"k"', None, number * SECOND, (number + 1) * SECOND, "")
            new = b'{"sum":1}' if number >= different else b'{"sum":"<img src=x>"}'
            old = {window: [(ResultRow(b'{"sum":1}', None, None),)]}
            self.comparison.compare(old, {window: [(ResultRow(new, None, None),)]})

    def end(self, outcome: Outcome, reason: str = "") -> None:
        self.outcome, self.reason = outcome, reason
        self.on_end(self)


def pretend_canaries(patch: pytest.MonkeyPatch) -> None:
    """Let the streams of a pretended service have pretended canaries."""
    patch.setattr(canaries, "CanaryRun", PretendedCanaryRun)
    patch.setattr(PretendedRun, "host", object())
