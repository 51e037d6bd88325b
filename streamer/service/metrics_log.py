"""`metrics.logger`: metrics as lines of the log. As in Benthos, a line for each."""

from __future__ import annotations

from streamer.engine.delivery import LogLine
from streamer.service.samples import mapped, samples
from streamer.service.view import StreamView


class MetricsLog:
    """Logs the metrics of a stream."""

    def __init__(self, view: StreamView, log: LogLine) -> None:
        """Take the stream, and where lines go."""
        self._view = view
        self._log = log
        self._flushes: bool = view.config.metrics.config["flush_metrics"]
        self._before: dict[str, float] = {}

    def write(self, last: bool) -> None:
        """Write a line for each metric; with `flush_metrics`, what has been added since."""
        for name, labels, value in mapped(samples(self._view), self._view.config.metrics.mapping):
            key = f"{name}{sorted(labels.items())}"
            shown = value - self._before.get(key, 0) if self._flushes else value
            self._before[key] = value
            self._log("INFO", "Metric", {"name": name, **labels, "value": shown})
