"""Metrics as text: for Prometheus, or as one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as PROMETHEUS
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from streamer.engine.timing import Times
from streamer.service.mapped import mapped
from streamer.service.prometheus_times import add_times
from streamer.service.samples import Sample, about
from streamer.service.view import StreamView
from streamer.spec import ParsedComponent

Views = Callable[[], Mapping[str, StreamView]]
"""Gives streams by id; the one of a program that has no others has an empty one."""

Exposition = Callable[[], tuple[bytes, str]]
"""Gives metrics as text, and its content type."""


def exposition(view: StreamView) -> Exposition | None:
    """Return how metrics are served; None when the config's metrics are not."""
    metrics = view.config.metrics
    if metrics.name == "prometheus":
        registry = registry_of(view)
        return lambda: (generate_latest(registry), PROMETHEUS)
    if metrics.name == "json_api":
        return lambda: (orjson.dumps(by_name(view)), "application/json")
    return None


def by_name(view: StreamView) -> dict[str, float | dict[str, float | None]]:
    """Return metrics by name and labels: `input_received{label="",path="root.input"}`.

    Those of times are their percentiles, ns; null when nothing was timed of late.
    """
    return {_full(sample): _plain(sample.value) for sample in mapped(view)}


def registry_of(view: StreamView) -> CollectorRegistry:
    """Return the metrics of a stream for Prometheus's client, and those that the config adds."""
    return _registry(view.config.metrics, lambda: {"": view})


def exposition_of_all(metrics: ParsedComponent, views: Views) -> Exposition | None:
    """Return how the metrics of many streams are served, with the label `stream`.

    Args:
        metrics: the service's `metrics` section.
        views: gives the streams by id.
    """
    if metrics.name == "prometheus":
        registry = _registry(metrics, views)
        return lambda: (generate_latest(registry), PROMETHEUS)
    if metrics.name == "json_api":
        return lambda: (
            orjson.dumps({_full(one): _plain(one.value) for one in _labelled(views())}),
            "application/json",
        )
    return None


def _registry(config: ParsedComponent, views: Views) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_OfStreams(config, views))
    if config.name == "prometheus" and config.config["add_process_metrics"]:
        ProcessCollector(registry=registry)
    if config.name == "prometheus" and config.config["add_go_metrics"]:
        # Those of the runtime that there is.
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
    return registry


def _labelled(views: Mapping[str, StreamView]) -> Iterator[Sample]:
    for stream_id, view in views.items():
        more = {"stream": stream_id} if stream_id else {}
        for sample in mapped(view):
            yield sample._replace(labels={**sample.labels, **more})


class _OfStreams(Collector):
    def __init__(self, metrics: ParsedComponent, views: Views) -> None:
        self._metrics = metrics
        self._views = views

    def collect(self) -> Iterator[Metric]:
        families: dict[tuple[str, bool], Metric] = {}
        config = self._metrics.config
        for name, labels, value in _labelled(self._views()):
            timed = isinstance(value, Times)
            if (name, timed) not in families:
                # A counter's name would be given the ending `_total`, which Benthos's have not.
                kind = "untyped"
                if timed:
                    kind = "histogram" if config["use_histogram_timing"] else "summary"
                families[name, timed] = Metric(name, about(name), kind)
            family = families[name, timed]
            if isinstance(value, Times):
                add_times(family, dict(labels), value, config)
            else:
                family.add_sample(name, dict(labels), value)
        yield from families.values()

    def describe(self) -> Iterable[Metric]:
        return ()


def _plain(value: float | Times) -> float | dict[str, float | None]:
    return value.percentiles() if isinstance(value, Times) else value


def _full(sample: Sample) -> str:
    labels: list[Any] = [f'{name}="{value}"' for name, value in sorted(sample.labels.items())]
    return f"{sample.name}{{{','.join(labels)}}}" if labels else sample.name
