"""The inputs of a stream that Spark reads with a source of its own, and where these may stand."""

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

_RUNS_IN_SPARK: Final = "Spark"


def find_spark_inputs(component: ParsedComponent, resources: Resources) -> list[str]:
    """Return where the inputs that Spark reads stand among an input's children, by their names.

    Args:
        component: the stream's input.
        resources: of the config.

    Raises:
        StreamerError: one of them is in another input than a plain broker.
    """
    return list(_spark_input_paths(component, resources, ()))


def _spark_input_paths(
    component: ParsedComponent, resources: Resources, parents: tuple[str, ...]
) -> Iterator[str]:
    component = resolve_resource(component, resources)
    if _is_read_by_spark(component):
        yield "/".join((*parents, component.name))
        return
    within = list(_spark_inputs_below(component, resources))
    if not within:
        return
    obstacle = _obstacle(component)
    if obstacle:
        raise StreamerError(
            f"{within[0].path}: {within[0].name} is read by Spark itself, and {obstacle} is not; "
            "put it at the top, or into a broker without batching and copies"
        )
    for number, child in enumerate(component.config[INPUTS]):
        yield from _spark_input_paths(child, resources, (*parents, str(child.label or number)))


def _obstacle(component: ParsedComponent) -> str:
    """Return what it is that Spark cannot read for an input; empty for nothing."""
    if component.name != "broker":
        return f"what is in {component.name}"
    if is_batching_used(component.config[BATCHING]):
        return "what a broker puts into batches"
    return "an input that is there more than once" if component.config[COPIES] > 1 else ""


def _spark_inputs_below(
    component: ParsedComponent, resources: Resources
) -> Iterator[ParsedComponent]:
    for child in child_components(component):
        child = resolve_resource(child, resources)
        if child.kind == Kind.INPUT:
            if _is_read_by_spark(child):
                yield child
            yield from _spark_inputs_below(child, resources)


def _is_read_by_spark(component: ParsedComponent) -> bool:
    component_spec = find_spec(component.kind, component.name)
    return component_spec is not None and component_spec.runs == _RUNS_IN_SPARK
