"""The inputs of a stream that Spark reads with a source of its own, and where these may stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.catalog import spec
from streamer.errors import StreamerError
from streamer.inputs.broker import COPIES, INPUTS
from streamer.pipeline.batching import BATCHING, in_use
from streamer.plan.resources import Resources, resolved
from streamer.spec import Kind, ParsedComponent
from streamer.spec.inside import inside

_SPARK: Final = "Spark"


def spark_read(component: ParsedComponent, resources: Resources) -> list[str]:
    """Return where the inputs that Spark reads stand among an input's children, by their names.

    Args:
        component: the stream's input.
        resources: of the config.

    Raises:
        StreamerError: one of them is in another input than a plain broker.
    """
    return list(_named(component, resources, ()))


def _named(component: ParsedComponent, resources: Resources, way: tuple[str, ...]) -> Iterator[str]:
    component = resolved(component, resources)
    if _by_spark(component):
        yield "/".join((*way, component.name))
        return
    within = list(_below(component, resources))
    if not within:
        return
    obstacle = _obstacle(component)
    if obstacle:
        raise StreamerError(
            f"{within[0].path}: {within[0].name} is read by Spark itself, and {obstacle} is not; "
            "put it at the top, or into a broker without batching and copies"
        )
    for number, child in enumerate(component.config[INPUTS]):
        yield from _named(child, resources, (*way, str(child.label or number)))


def _obstacle(component: ParsedComponent) -> str:
    """Return what it is that Spark cannot read for an input; empty for nothing."""
    if component.name != "broker":
        return f"what is in {component.name}"
    if in_use(component.config[BATCHING]):
        return "what a broker puts into batches"
    return "an input that is there more than once" if component.config[COPIES] > 1 else ""


def _below(component: ParsedComponent, resources: Resources) -> Iterator[ParsedComponent]:
    for child in inside(component):
        child = resolved(child, resources)
        if child.kind == Kind.INPUT:
            if _by_spark(child):
                yield child
            yield from _below(child, resources)


def _by_spark(component: ParsedComponent) -> bool:
    found = spec(component.kind, component.name)
    return found is not None and found.runs == _SPARK
