"""`metrics.logger`: metrics as lines of the log. As in Benthos, a line for each.

Those of many streams have the field `stream`.
"""

from __future__ import annotations

from typing import Any

from streamer.engine.delivery import LogLine
from streamer.engine.timing import Times
from streamer.service.mapped import labelled
from streamer.service.samples import Sample
from streamer.service.view import Views


class MetricsLog:
    """Logs the metrics of streams."""

    def __init__(self, views: Views, log: LogLine, *, flushes: bool = False) -> None:
        """Take the streams, where lines go, and whether counters go back to 0 after each time."""
        self._views = views
        self._log = log
        self._flushes = flushes
        self._before: dict[str, float | Times] = {}

    def write(self, last: bool) -> None:
        """Write a line for each metric; when they go back to 0, what has been added since."""
        for sample in labelled(self._views()):
            name, labels, value, *_ = sample
            key = f"{name}{sorted(labels.items())}"
            shown = _since(value, self._before.get(key)) if self._flushes else value
            self._before[key] = value
            self._log(
                "INFO", "Metric", {"name": name, **labels, **_fields(sample._replace(value=shown))}
            )


def _since(value: float | Times, before: float | Times | None) -> float | Times:
    if isinstance(value, Times):
        return value.since(before) if isinstance(before, Times) else value
    return value - before if isinstance(before, int | float) else value


def _fields(sample: Sample) -> dict[str, Any]:
    plain = sample.plain()
    return plain if isinstance(plain, dict) else {"value": plain}
