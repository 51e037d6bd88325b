"""`metrics.logger`: metrics as lines of the log. As in Benthos, a line for each."""

from __future__ import annotations

from typing import Any

from streamer.engine.delivery import LogLine
from streamer.engine.timing import Times
from streamer.service.mapped import mapped
from streamer.service.view import StreamView


class MetricsLog:
    """Logs the metrics of a stream."""

    def __init__(self, view: StreamView, log: LogLine) -> None:
        """Take the stream, and where lines go."""
        self._view = view
        self._log = log
        self._flushes: bool = view.config.metrics.config["flush_metrics"]
        self._before: dict[str, float | Times] = {}

    def write(self, last: bool) -> None:
        """Write a line for each metric; with `flush_metrics`, what has been added since."""
        for name, labels, value in mapped(self._view):
            key = f"{name}{sorted(labels.items())}"
            shown = _since(value, self._before.get(key)) if self._flushes else value
            self._before[key] = value
            self._log("INFO", "Metric", {"name": name, **labels, **_fields(shown)})


def _since(value: float | Times, before: float | Times | None) -> float | Times:
    if isinstance(value, Times):
        return value.since(before) if isinstance(before, Times) else value
    return value - before if isinstance(before, int | float) else value


def _fields(value: float | Times) -> dict[str, Any]:
    return value.percentiles() if isinstance(value, Times) else {"value": value}
