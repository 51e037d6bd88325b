"""`metrics.statsd`: metrics as datagrams of StatsD, by https://github.com/statsd/statsd."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from streamer.components.metrics.metric import MetricKind
from streamer.components.metrics.statsd import ADDRESS, TAG_FORMAT, TAGS
from streamer.core.component_stats import bucket_middle
from streamer.core.durations import SECOND
from streamer.core.log_format import LogLine
from streamer.core.urls import split_url
from streamer.engine.report.latency import LatencySnapshot
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_mapping import label_samples
from streamer.service.monitoring.sample_deltas import SampleDeltas
from streamer.service.monitoring.stream_view import Views

MIN_PERIOD: Final = SECOND
"""Figures change by micro-batch: to collect them ten times a second would cost for nothing."""

_MAX_DATAGRAM_BYTES: Final = 1400
_RESERVED: Final = str.maketrans(dict.fromkeys(":|@#,=\n ", "_"))
"""Characters that end a name or a tag."""


class StatsdExporter:
    """Sends the metrics of streams; what goes wrong is logged once, until it works again."""

    def __init__(self, metrics: ParsedComponent, views: Views, log: LogLine) -> None:
        """Take a `metrics` section, which is StatsD's, the streams, and where lines go."""
        self._config = metrics.config
        self._permissions = metrics.permissions
        self._views = views
        self._log = log
        self._deltas = SampleDeltas()
        self._failure = ""

    def export(self, is_last: bool) -> None:
        """Send what has changed, and all gauges."""
        lines = format_lines(
            label_samples(self._views()),
            self._deltas,
            self._config[TAG_FORMAT],
            self._config[TAGS],
        )
        address: str = self._config[ADDRESS]
        try:
            self._send(pack_datagrams(lines), address)
            failure = ""
        except (OSError, ValueError) as error:
            failure = str(error)
        if failure and failure != self._failure:
            self._log("ERROR", f"Failed to send metrics to {address}: {failure}", {})
        self._failure = failure

    def _send(self, datagrams: Iterable[bytes], address: str) -> None:
        parts = split_url(f"udp://{address}")
        host, port = parts.hostname or "127.0.0.1", parts.port or 8125
        family, kind, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self._permissions.address(str(place[0]))
        with socket.socket(family, kind) as sender:
            # Unconnected: a server that is away costs datagrams, and no error.
            for datagram in datagrams:
                sender.sendto(datagram, place)


def format_lines(
    samples: Iterable[Sample], deltas: SampleDeltas, tag_format: str, tags: Mapping[str, str]
) -> list[str]:
    """Return the lines of samples.

    Args:
        samples: the figures.
        deltas: knows those that were sent before.
        tag_format: `none`, `datadog` or `influxdb`.
        tags: those of all metrics; labels of a metric stand before them.
    """
    counts: Counter[tuple[str, str]] = Counter()
    gauges: Counter[tuple[str, str]] = Counter()
    lines: list[str] = []
    for sample in samples:
        labels = {**tags, **sample.labels} if tag_format != "none" else {}
        name, ending = _tag(sample.name.translate(_RESERVED), labels, tag_format)
        if isinstance(sample.value, LatencySnapshot):
            lines += _timing_lines(sample, deltas, name, ending)
        elif sample.type_name == MetricKind.COUNTER:
            grown = deltas.advance(sample)
            if isinstance(grown, int | float):
                counts[name, ending] += int(grown)
        else:
            gauges[name, ending] += sample.value  # type: ignore[assignment]
    lines += [f"{name}:{count}|c{ending}" for (name, ending), count in counts.items() if count]
    for (name, ending), value in gauges.items():
        if value < 0:
            # A sign would change the gauge by so much.
            lines.append(f"{name}:0|g{ending}")
        lines.append(f"{name}:{value:.12g}|g{ending}")
    return lines


def _timing_lines(sample: Sample, deltas: SampleDeltas, name: str, ending: str) -> Iterator[str]:
    grown = deltas.advance(sample)
    assert isinstance(grown, LatencySnapshot)
    unit = SECOND if sample.type_name == MetricKind.HISTOGRAM else 1
    for bucket, number in sorted(grown.buckets.items()):
        if number > 0:
            rate = "" if number == 1 else f"|@{1 / number:.9g}"
            yield f"{name}:{bucket_middle(bucket) / unit:.9g}|ms{rate}{ending}"


def _tag(name: str, labels: Mapping[str, str], tag_format: str) -> tuple[str, str]:
    """Return a name with its tags, and what stands at the end of the line."""
    pairs = [
        (key.translate(_RESERVED), value.translate(_RESERVED))
        for key, value in labels.items()
        if value
    ]
    if tag_format == "datadog":
        return name, f"|#{','.join(f'{key}:{value}' for key, value in pairs)}" if pairs else ""
    return "".join([name, *(f",{key}={value}" for key, value in pairs)]), ""


def pack_datagrams(lines: Iterable[str]) -> Iterator[bytes]:
    """Give lines in datagrams that pass any network whole.

    >>> [len(datagram) for datagram in pack_datagrams(["a:1|c"] * 400)]
    [1397, 1001]
    """
    packed = b""
    for line in map(str.encode, lines):
        if packed and len(packed) + 1 + len(line) > _MAX_DATAGRAM_BYTES:
            yield packed
            packed = b""
        packed = packed + b"\n" + line if packed else line
    if packed:
        yield packed
