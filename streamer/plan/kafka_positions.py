"""The inputs of a stream whose partitions workers read by themselves, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.components.catalog import find_spec
from streamer.components.inputs.broker import COPIES, INPUTS
from streamer.core.errors import StreamerError
from streamer.plan.component_lookup import resolve_resource
from streamer.sdk.processing.batching import BATCHING, is_batching_used
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources

_BROKER: Final = "broker"
_RUNS_IN_SPARK: Final = "Spark"


def find_worker_inputs(component: ParsedComponent, resources: Resources) -> list[str]:
    """Return where the inputs that workers read stand among an input's children, by their names.

    Inside of other inputs than plain brokers, the driver reads them.

    Args:
        component: the stream's input.
        resources: of the config.

    Raises:
        StreamerError: one of them is there several times.
    """
    _check_copies(component, resources)
    return list(_worker_input_paths(component, resources, ()))


def _check_copies(component: ParsedComponent, resources: Resources) -> None:
    component = resolve_resource(component, resources)
    below = list(_worker_inputs_below(component, resources))
    if below and component.name == _BROKER and component.config[COPIES] > 1:
        raise StreamerError(
            f"{component.path}: copies is {component.config[COPIES]}, and each copy of "
            f"{below[0].name} would read all messages; leave copies out: the workers share the "
            "partitions of one"
        )
    for child in child_components(component):
        if child.kind == Kind.INPUT:
            _check_copies(child, resources)


def _worker_inputs_below(
    component: ParsedComponent, resources: Resources
) -> Iterator[ParsedComponent]:
    for child in child_components(component):
        child = resolve_resource(child, resources)
        if child.kind == Kind.INPUT:
            if _is_read_by_workers(child):
                yield child
            yield from _worker_inputs_below(child, resources)


def _worker_input_paths(
    component: ParsedComponent, resources: Resources, parents: tuple[str, ...]
) -> Iterator[str]:
    component = resolve_resource(component, resources)
    if _is_read_by_workers(component):
        yield "/".join((*parents, component.name))
        return
    if component.name != _BROKER or is_batching_used(component.config[BATCHING]):
        return
    for number, child in enumerate(component.config[INPUTS]):
        yield from _worker_input_paths(child, resources, (*parents, str(child.label or number)))


def _is_read_by_workers(component: ParsedComponent) -> bool:
    component_spec = find_spec(component.kind, component.name)
    return component_spec is not None and component_spec.runs == _RUNS_IN_SPARK
