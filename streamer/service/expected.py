"""The components of a config that have metrics, so that each is there before it counts anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from streamer.config import Config
from streamer.failure import Origin
from streamer.pipeline.observed import UNOBSERVED
from streamer.spec import Kind, MetricsMapping, ParsedComponent
from streamer.spec.inside import inside

_TYPES = {"counter": "counter", "counter_by": "counter", "gauge": "gauge"}
_COUNTED = frozenset({Kind.INPUT, Kind.BUFFER, Kind.PROCESSOR, Kind.OUTPUT})


class Expected(NamedTuple):
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


def expected(config: Config) -> tuple[Expected, ...]:
    """Return the components that a config runs, in the order of a message's way."""
    return tuple(dict.fromkeys(one for one in _Walk(config).components() if not one.custom[0]))


def custom_metrics(config: Config) -> tuple[Expected, ...]:
    """Return the processors of a config that make metrics of its own."""
    return tuple(dict.fromkeys(one for one in _Walk(config).components() if one.custom[0]))


class _Walk:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._open: list[tuple[Kind, Any]] = []

    def components(self) -> Iterator[Expected]:
        config = self._config
        yield from self._all(config.input)
        if config.buffer.name != "none":
            yield from self._all(config.buffer)
        for processor in config.processors:
            yield from self._all(processor)
        yield from self._all(config.output)
        late = config.buffer.config.get("late_output")
        if late:
            yield from self._resource(Kind.OUTPUT, late)

    def _all(
        self, component: ParsedComponent, outer: tuple[MetricsMapping, ...] = ()
    ) -> Iterator[Expected]:
        mappings = (*component.metrics_mappings, *outer)
        if component.name == "resource":
            yield from self._resource(component.kind, component.config)
        elif component.kind in _COUNTED:
            custom = _custom(component)
            if custom[0] or component.name not in UNOBSERVED:
                _, label, path = Origin(component).key
                yield Expected(component.kind, label, path, mappings, custom)
        for processor in component.processors:
            yield from self._all(processor)
        for child in inside(component):
            yield from self._all(child, mappings)

    def _resource(self, kind: Kind, label: str) -> Iterator[Expected]:
        """Follow a label; what refers to a resource does not lend it its mappings."""
        found = self._config.resources.get((kind, label))
        if found is not None and (kind, label) not in self._open:
            self._open.append((kind, label))
            yield from self._all(found)
            self._open.pop()


def _custom(component: ParsedComponent) -> tuple[str, str]:
    """Return name and type, as Prometheus has it, of the metric that a config makes itself."""
    if (component.kind, component.name) != (Kind.PROCESSOR, "metric"):
        return "", ""
    return component.config["name"], _TYPES.get(component.config["type"].lower(), "")
