"""Resolve the path of a source piece to its input and that input's processors: brokers may nest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streamer.components.inputs.broker import children
from streamer.plan.resources import resolve_resource
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.parsed_config import Resources


def input_of_path(
    component: ParsedComponent, input_path: Sequence[int], resources: Resources
) -> ParsedComponent:
    """Return the input at a path of numbers, with the processors of all inputs that it is in.

    A config that was changed meanwhile may have no such input any more: then it is the whole one.

    Args:
        component: the plan's input.
        input_path: the numbers of the sources that a piece is from, the outermost first.
        resources: the plan's.
    """
    if component.name != "broker" or not input_path or input_path[0] >= len(children(component)):
        return component
    child = resolve_resource(children(component)[input_path[0]], resources)
    return _with_broker_processors(component, input_of_path(child, input_path[1:], resources))


def input_paths(component: ParsedComponent, resources: Resources) -> Iterator[tuple[int, ...]]:
    """Return the paths of an input and of all inputs that it reads from."""
    yield ()
    component = resolve_resource(component, resources)
    if component.name == "broker":
        for number, child in enumerate(children(component)):
            yield from ((number, *path) for path in input_paths(child, resources))


def leaf_inputs(component: ParsedComponent, resources: Resources) -> Iterator[ParsedComponent]:
    """Return the inputs that an input reads from, itself if it is no broker."""
    component = resolve_resource(component, resources)
    if component.name != "broker":
        yield component
        return
    for child in component.config["inputs"]:
        for one in leaf_inputs(child, resources):
            yield _with_broker_processors(component, one)


def inner_inputs(
    component: ParsedComponent, input_path: Sequence[int], resources: Resources
) -> Iterator[ParsedComponent]:
    """Return the inputs inside of an input that messages of a path come through, outermost first.

    What has come through which input of a `sequence` no path knows: all of them are returned.

    Args:
        component: the plan's input.
        input_path: the numbers of the sources that a piece is from, the outermost first.
        resources: the plan's.
    """
    inner = [one for one in child_components(component) if one.kind == Kind.INPUT]
    further: Sequence[int] = ()
    if component.name == "broker" and input_path:
        inner, further = [children(component)[input_path[0]]], input_path[1:]
    for one in inner:
        input_component = resolve_resource(one, resources)
        yield input_component
        yield from inner_inputs(input_component, further, resources)


def _with_broker_processors(broker: ParsedComponent, child: ParsedComponent) -> ParsedComponent:
    return replace(child, processors=(*child.processors, *broker.processors))
