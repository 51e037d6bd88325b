"""Figures of a stream for the service's pages: their history, their rates now, and its markers."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from streamer.engine.report.back_pressure import NodeLoad, NodeShares, find_back_pressure
from streamer.engine.report.figure_history import NODE_PREFIXES, FigureHistory
from streamer.engine.report.flow_rates import FlowRates

MAX_MARKERS: Final = 100
MAX_TEXT_CHARACTERS: Final = 300

_LOAD_WINDOW_S: Final = 60.0
"""Seconds that the load of components is over."""

_SAME_ERROR_S, _NEXT_ERROR_S = 60.0, 10.0
"""Seconds in which an error of the same text, and of another one, is no marker of its own."""


class MarkerKind(StrEnum):
    """Events that are marked in charts."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    DEPLOY = "deploy"
    ROLLBACK = "rollback"
    ERROR = "error"


class Marker(NamedTuple):
    """An event.

    Attributes:
        at: Unix s.
        kind: what happened.
        text: more about it.
        times: how often it happened, of errors that came one soon after the other.
    """

    at: float
    kind: MarkerKind
    text: str
    times: int = 1


class StreamFigures:
    """The figures of a stream; they outlive its runs. It can be used from several threads.

    Attributes:
        history: of the last hour.
        rates: over the last seconds: of `in`, `out` and `error`, and of what components receive and
            send, such as `root.output sent`.
        node_order: where components stand on the way of a message, by path.
        counted_since: when the counters of the run began at zero, Unix s; None before a run.
        received: messages taken in since then.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Begin with nothing; `clock` gives the time, Unix s."""
        self.history = FigureHistory()
        self.rates = FlowRates()
        self.node_order: Mapping[str, int] = {}
        self.counted_since: float | None = None
        self.received = 0
        self.clock = clock
        self._lock = threading.Lock()
        self._markers: deque[Marker] = deque(maxlen=MAX_MARKERS)
        self._last_error_at = 0.0

    def mark(self, kind: MarkerKind, text: str = "") -> None:
        """Note that something has happened now; errors that come close together are one marker."""
        now, text = self.clock(), " ".join(text.split())[:MAX_TEXT_CHARACTERS]
        with self._lock:
            last = self._markers[-1] if self._markers else None
            if last is not None and kind is last.kind is MarkerKind.ERROR:
                gap_s = _SAME_ERROR_S if text == last.text else _NEXT_ERROR_S
                if abs(now - self._last_error_at) < gap_s:
                    self._last_error_at = now
                    self._markers[-1] = last._replace(times=last.times + 1)
                    return
            if kind is MarkerKind.ERROR:
                self._last_error_at = now
            self._markers.append(Marker(now, kind, text))

    def markers(self) -> list[Marker]:
        """Return the markers, the newest last."""
        with self._lock:
            return list(self._markers)

    def load_markers(self, markers: Sequence[Marker]) -> None:
        """Have markers of an earlier run before the others."""
        with self._lock:
            self._markers = deque([*markers, *self._markers], maxlen=MAX_MARKERS)

    def read_loads(self) -> dict[str, NodeLoad]:
        """Return the load of components over the last minute, by path; none where nobody knows."""
        now = self.clock()
        busy, waiting = NODE_PREFIXES
        reading = self.history.read(
            now - _LOAD_WINDOW_S, now, lambda name: name.startswith(NODE_PREFIXES)
        )

        def mean(name: str) -> float:
            known = [one for one in reading.values.get(name, ()) if one is not None]
            return sum(known) / len(known) if known else 0.0

        if not any(one is not None for values in reading.values.values() for one in values):
            return {}
        known = {
            path: NodeShares(mean(busy + path), mean(waiting + path)) for path in self.node_order
        }
        return find_back_pressure(known, self.node_order)

    def rate_fields(self) -> dict[str, Any]:
        """Return the rates of the stream, messages per second, as fields of its summary."""
        return {
            f"{name}_rate": None if (rate := self.rates.rate(name)) is None else round(rate, 3)
            for name in ("in", "out", "error")
        }
