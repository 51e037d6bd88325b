"""`metrics.logger`: metrics as lines of the log. As in Benthos, a line for each.

Those of many streams have the field `stream`.
"""

from __future__ import annotations

from typing import Any

from streamer.core.log_format import LogLine
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_mapping import label_samples
from streamer.service.monitoring.sample_deltas import SampleDeltas
from streamer.service.monitoring.stream_view import Views


class MetricsLog:
    """Logs the metrics of streams."""

    def __init__(self, views: Views, log: LogLine, *, resets_counters: bool = False) -> None:
        """Take the streams, where lines go, and whether counters go back to 0 after each time."""
        self._views = views
        self._log = log
        self._resets_counters = resets_counters
        self._deltas = SampleDeltas()

    def write(self, is_last: bool) -> None:
        """Write a line for each metric; when they go back to 0, what has been added since."""
        for sample in label_samples(self._views()):
            name, labels, value, *_ = sample
            reported = self._deltas.advance(sample) if self._resets_counters else value
            self._log(
                "INFO",
                "Metric",
                {"name": name, **labels, **_value_fields(sample._replace(value=reported))},
            )


def _value_fields(sample: Sample) -> dict[str, Any]:
    plain = sample.plain_value()
    return plain if isinstance(plain, dict) else {"value": plain}
