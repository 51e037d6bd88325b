"""Metrics as text: for Prometheus, or as one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import orjson
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as PROMETHEUS
from prometheus_client.registry import Collector

from streamer.components.metrics.metric import MetricKind
from streamer.components.metrics.metric_names import HISTOGRAM_BOUNDS_S
from streamer.engine.report.latency import LatencySnapshot
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_mapping import label_samples, map_samples
from streamer.service.monitoring.process_metrics import process_samples
from streamer.service.monitoring.prometheus_times import (
    DEFAULT_BOUNDS_S,
    add_histogram,
    add_summary,
)
from streamer.service.monitoring.stream_view import StreamView, Views
from streamer.service.monitoring.text_format import Family, render_text

Exposition = Callable[[], tuple[bytes, str]]
"""Gives metrics as text, and its content type."""


def make_exposition(view: StreamView) -> Exposition | None:
    """Return how metrics are served; None when the config's metrics are not."""
    metrics = view.config.metrics
    if metrics.name == "prometheus":
        registry = make_registry(metrics, lambda: {"": view})
        return lambda: (render_text(registry), PROMETHEUS)
    if metrics.name == "json_api":
        return lambda: (
            orjson.dumps(metrics_by_name(view) | _plain_by_name(process_samples())),
            "application/json",
        )
    return None


def metrics_by_name(view: StreamView) -> dict[str, float | dict[str, float | None]]:
    """Return metrics by name and labels: `input_received{label="",path="root.input"}`.

    Those of times are their percentiles, in the metric's unit; null when nothing was timed of late.
    """
    return _plain_by_name(map_samples(view))


def _plain_by_name(samples: Iterable[Sample]) -> dict[str, float | dict[str, float | None]]:
    return {_full_name(sample): sample.plain_value() for sample in samples}


def make_fleet_exposition(metrics: ParsedComponent, views: Views) -> Exposition | None:
    """Return how the metrics of many streams are served, with the label `stream`.

    Args:
        metrics: the service's `metrics` section.
        views: gives the streams by id.
    """
    if metrics.name == "prometheus":
        registry = make_registry(metrics, views)
        return lambda: (render_text(registry), PROMETHEUS)
    if metrics.name == "json_api":
        return lambda: (
            orjson.dumps(_plain_by_name([*label_samples(views()), *process_samples()])),
            "application/json",
        )
    return None


def make_registry(config: ParsedComponent, views: Views) -> CollectorRegistry:
    """Return the metrics of streams for Prometheus's client, and those that the section adds."""
    registry = CollectorRegistry()
    registry.register(_StreamCollector(config, views))
    if config.name == "prometheus" and config.config["add_process_metrics"]:
        ProcessCollector(registry=registry)
    if config.name == "prometheus" and config.config["add_go_metrics"]:
        # Those of the runtime that there is.
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
    return registry


class _Counter(str):
    """The type of counters, which the client does not take for one.

    It gives counters the ending `_total`, which Benthos's have not.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = str.__hash__


_COUNTER: Final = _Counter("counter")


class _StreamCollector(Collector):
    def __init__(self, metrics: ParsedComponent, views: Views) -> None:
        self._metrics = metrics
        self._views = views

    def collect(self) -> Iterator[Metric]:
        families: dict[tuple[str, str], Family] = {}
        samples = [*label_samples(self._views()), *process_samples()]
        # A name has one type, whatever the metrics of a config say of theirs.
        kinds: dict[str, str] = {}
        for sample in samples:
            kind = self._kind(sample)
            if kinds.setdefault(sample.name, kind) != kind and sample.metric is None:
                kinds[sample.name] = "untyped"
        for sample in samples:
            name, labels, value, metric, _ = sample
            kind = self._kind(sample)
            if metric is None and kind in ("counter", "gauge") and kinds[name] == "untyped":
                kind = "untyped"
            if (name, kind) not in families:
                about = metric.about if metric is not None else "A metric that the config has made."
                new_family = families[name, kind] = Family(name, about, kind)
                if kind == "counter":
                    new_family.type = _COUNTER
            family = families[name, kind]
            if not isinstance(value, LatencySnapshot):
                family.add_sample(name, dict(labels), value)
            elif kind == "summary":
                quantiles = self._metrics.config["summary_quantiles_objectives"]
                add_summary(family, dict(labels), value, quantiles)
            else:
                own = HISTOGRAM_BOUNDS_S.get(metric.name) if metric is not None else None
                add_histogram(family, dict(labels), value, own or self._bounds)
        yield from families.values()

    @property
    def _bounds(self) -> Sequence[float]:
        return sorted(self._metrics.config["histogram_buckets"]) or DEFAULT_BOUNDS_S

    def _kind(self, sample: Sample) -> str:
        metric = sample.metric
        if isinstance(sample.value, LatencySnapshot):
            always = metric is not None and metric.kind == MetricKind.HISTOGRAM
            return (
                "histogram" if always or self._metrics.config["use_histogram_timing"] else "summary"
            )
        return sample.kind if metric is None else str(metric.kind)

    def describe(self) -> Iterable[Metric]:
        return ()


def _full_name(sample: Sample) -> str:
    labels: list[Any] = [f'{name}="{value}"' for name, value in sorted(sample.labels.items())]
    return f"{sample.name}{{{','.join(labels)}}}" if labels else sample.name
