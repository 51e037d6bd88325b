"""`metrics.aws_cloudwatch`: metrics sent to CloudWatch by requests for `PutMetricData`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from streamer.components.metrics.aws_cloudwatch import NAMESPACE
from streamer.components.metrics.metric import MetricKind
from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.core.component_stats import bucket_middle
from streamer.core.durations import MICROSECOND, SECOND
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.report.latency import LatencySnapshot
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_mapping import label_samples
from streamer.service.monitoring.sample_deltas import SampleDeltas
from streamer.service.monitoring.stream_view import Views

MIN_PERIOD: Final = SECOND
"""Figures change by micro-batch: to send them ten times a second would cost for nothing."""

Datum = dict[str, Any]
"""A metric as CloudWatch takes it."""

_MAX_REQUEST_DATA: Final = 500
_MAX_WAITING: Final = 5_000
"""Data that are kept while CloudWatch does not answer; then the oldest are left out."""
_MAX_VALUES: Final = 150
_MAX_DIMENSIONS: Final = 10
_MAX_NAME_CHARS: Final = 255
_MAX_LABEL_CHARS: Final = 1024
_ALL_GAUGES_S: Final = 60.0


class CloudWatchExporter:
    """Sends the metrics of streams; what goes wrong is logged once, until it works again."""

    def __init__(
        self,
        metrics: ParsedComponent,
        views: Views,
        log: LogLine,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take a `metrics` section, which is CloudWatch's, the streams, and where lines go."""
        self._namespace = metrics.config[NAMESPACE]
        self._client = AwsClient(metrics.config, "cloudwatch", read_timeout_s=10.0)
        self._views = views
        self._log = log
        self._clock = clock
        self._deltas = SampleDeltas()
        self._gauges_at = -math.inf
        self._waiting: list[Datum] = []
        self._failure = ""

    def export(self, is_last: bool) -> None:
        """Send what has changed, and what could not be sent before."""
        now = self._clock()
        has_all_gauges = now - self._gauges_at >= _ALL_GAUGES_S
        if has_all_gauges:
            self._gauges_at = now
        at = datetime.now(UTC)
        samples = label_samples(self._views())
        self._waiting += [
            {**datum, "Timestamp": at}
            for datum in make_data(samples, self._deltas, has_all_gauges=has_all_gauges)
        ]
        del self._waiting[:-_MAX_WAITING]
        try:
            failure = self._send()
        except StreamerError as error:
            failure = str(error)
        if failure and failure != self._failure:
            self._log("ERROR", f"Failed to send metrics to CloudWatch: {failure}", {})
        self._failure = failure

    def _send(self) -> str:
        """Send what waits; return why some of it is refused, which is left out.

        Raises:
            StreamerError: nothing answers, or nothing is taken for now.
        """
        failure = ""
        while self._waiting:
            data = self._waiting[:_MAX_REQUEST_DATA]
            try:
                self._put(data)
            except AwsError as error:
                if not error.is_content_refused:
                    raise
                failure = str(error)
            del self._waiting[: len(data)]
        return failure

    def _put(self, data: Sequence[Datum]) -> None:
        self._client.run(
            lambda client: client.put_metric_data(Namespace=self._namespace, MetricData=data)
        )


def make_data(
    samples: Iterable[Sample], deltas: SampleDeltas, *, has_all_gauges: bool
) -> Iterator[Datum]:
    """Return the data of samples.

    Args:
        samples: the figures.
        deltas: knows those that were sent before.
        has_all_gauges: whether gauges are given that have not changed.
    """
    for sample in samples:
        grown = deltas.advance(sample)
        datum: Datum = {"MetricName": _ascii_text(sample.name, _MAX_NAME_CHARS)}
        if dimensions := _make_dimensions(sample.labels):
            datum["Dimensions"] = dimensions
        if isinstance(grown, LatencySnapshot):
            is_histogram = sample.type_name == MetricKind.HISTOGRAM
            for values, counts in _cut_distribution(grown, SECOND if is_histogram else MICROSECOND):
                unit = "Seconds" if is_histogram else "Microseconds"
                yield {**datum, "Unit": unit, "Values": values, "Counts": counts}
        elif sample.type_name == MetricKind.COUNTER:
            if grown:
                yield {**datum, "Unit": "Count", "Value": float(grown)}
        elif (grown or has_all_gauges) and not isinstance(sample.value, LatencySnapshot):
            yield {**datum, "Unit": "None", "Value": float(sample.value)}


def _make_dimensions(labels: Mapping[str, str]) -> list[dict[str, str]]:
    named = [
        {"Name": _ascii_text(name, _MAX_NAME_CHARS), "Value": _ascii_text(text, _MAX_LABEL_CHARS)}
        for name, text in labels.items()
        if text
    ]
    return named[:_MAX_DIMENSIONS]


def _ascii_text(text: str, limit: int) -> str:
    return text.encode("ascii", "replace").decode()[:limit]


def _cut_distribution(
    grown: LatencySnapshot, unit: int
) -> Iterator[tuple[Sequence[float], Sequence[float]]]:
    """Return values and how often there were, in as many parts as CloudWatch needs."""
    filled = [(bucket, number) for bucket, number in sorted(grown.buckets.items()) if number > 0]
    for at in range(0, len(filled), _MAX_VALUES):
        some = filled[at : at + _MAX_VALUES]
        values = [bucket_middle(bucket) / unit for bucket, _ in some]
        yield values, [float(number) for _, number in some]
