"""The growth of figures since the last look at them."""

from __future__ import annotations

from streamer.engine.report.latency import LatencySnapshot
from streamer.service.monitoring.metric_samples import Sample

Value = float | LatencySnapshot


class SampleDeltas:
    """Remembers the figures of streams, by name and labels."""

    def __init__(self) -> None:
        """Begin with nothing: the first look at a figure gives all of it."""
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], Value] = {}

    def advance(self, sample: Sample) -> Value:
        """Return what a figure has grown by, and remember it."""
        key = sample.name, tuple(sorted(sample.labels.items()))
        before, self._values[key] = self._values.get(key), sample.value
        value = sample.value
        if isinstance(value, LatencySnapshot):
            return value.since(before) if isinstance(before, LatencySnapshot) else value
        return value - before if isinstance(before, int | float) else value
