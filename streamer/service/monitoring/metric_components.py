"""The components of a config that have metrics, so that each is there before it counts anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from streamer.config import Config
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing import UNINSTRUMENTED
from streamer.sdk.spec import Kind, MetricsMapping, ParsedComponent
from streamer.sdk.spec.children import child_components

_METRIC_TYPES = {"counter": "counter", "counter_by": "counter", "gauge": "gauge"}
_COUNTED_KINDS = frozenset({Kind.INPUT, Kind.BUFFER, Kind.PROCESSOR, Kind.OUTPUT})


class MetricComponent(NamedTuple):
    """A component that has metrics.

    Attributes:
        kind: its kind.
        label: its label, or an empty string.
        path: where it stands, as the metrics' label says it.
        mappings: those of the templates that have made it, the innermost first.
        custom: the name and the type of the metric that it is itself; empty where it is none.
    """

    kind: Kind
    label: str
    path: str
    mappings: tuple[MetricsMapping, ...]
    custom: tuple[str, str] = ("", "")


def find_metric_components(config: Config) -> tuple[MetricComponent, ...]:
    """Return the components that a config runs, in the order of a message's way."""
    return tuple(
        dict.fromkeys(one for one in _ComponentWalk(config).components() if not one.custom[0])
    )


def find_custom_metrics(config: Config) -> tuple[MetricComponent, ...]:
    """Return the processors of a config that make metrics of its own."""
    return tuple(dict.fromkeys(one for one in _ComponentWalk(config).components() if one.custom[0]))


class _ComponentWalk:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._open_resources: list[tuple[Kind, Any]] = []

    def components(self) -> Iterator[MetricComponent]:
        config = self._config
        for component in config.components:
            if component.kind != Kind.BUFFER or component.name != "none":
                yield from self._walk_component(component)
        for label in config.late_outputs:
            yield from self._walk_resource(Kind.OUTPUT, label)

    def _walk_component(
        self, component: ParsedComponent, outer: tuple[MetricsMapping, ...] = ()
    ) -> Iterator[MetricComponent]:
        mappings = (*component.metrics_mappings, *outer)
        if component.name == "resource":
            yield from self._walk_resource(component.kind, component.config)
        elif component.kind in _COUNTED_KINDS:
            custom = _custom_metric(component)
            if custom[0] or component.name not in UNINSTRUMENTED:
                _, label, path = ComponentRef(component).key
                yield MetricComponent(component.kind, label, path, mappings, custom)
        for processor in component.processors:
            yield from self._walk_component(processor)
        for child in child_components(component):
            yield from self._walk_component(child, mappings)

    def _walk_resource(self, kind: Kind, label: str) -> Iterator[MetricComponent]:
        """Follow a label; what refers to a resource does not lend it its mappings."""
        resource = self._config.resources.get((kind, label))
        if resource is not None and (kind, label) not in self._open_resources:
            self._open_resources.append((kind, label))
            yield from self._walk_component(resource)
            self._open_resources.pop()


def _custom_metric(component: ParsedComponent) -> tuple[str, str]:
    """Return name and type, as Prometheus has it, of the metric that a config makes itself."""
    if (component.kind, component.name) != (Kind.PROCESSOR, "metric"):
        return "", ""
    return component.config["name"], _METRIC_TYPES.get(component.config["type"].lower(), "")
