"""Resolve a source piece to its input component and that input's processors (brokers may nest)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from streamer.components.inputs.broker import children
from streamer.connectors.merged_source import ChildPiece
from streamer.plan.resources import resolve_resource
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.parsed_config import Resources


def input_of_piece(component: ParsedComponent, piece: Any, resources: Resources) -> ParsedComponent:
    """Return the input that a piece is from, with the processors of all that it is in.

    Args:
        component: the plan's input.
        piece: what its source has made.
        resources: the plan's.
    """
    if component.name != "broker" or not isinstance(piece, ChildPiece):
        return component
    child = resolve_resource(children(component)[piece.child], resources)
    return _with_broker_processors(component, input_of_piece(child, piece.piece, resources))


def input_of_path(
    component: ParsedComponent, input_path: Sequence[int], resources: Resources
) -> ParsedComponent:
    """Return what `input_of_piece` does for a piece that came by a path of inputs.

    A config that was changed meanwhile may have no such input any more: then it is the whole one.
    """
    if component.name != "broker" or not input_path or input_path[0] >= len(children(component)):
        return component
    child = resolve_resource(children(component)[input_path[0]], resources)
    return _with_broker_processors(component, input_of_path(child, input_path[1:], resources))


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
    component: ParsedComponent, piece: Any, resources: Resources
) -> Iterator[ParsedComponent]:
    """Return the inputs inside of an input that a piece has come through, the outermost first.

    What has come through which input of a `sequence` a piece does not know: all of them are
    returned.

    Args:
        component: the plan's input.
        piece: what its source has made.
        resources: the plan's.
    """
    inner = [one for one in child_components(component) if one.kind == Kind.INPUT]
    further = None
    if component.name == "broker" and isinstance(piece, ChildPiece):
        inner, further = [children(component)[piece.child]], piece.piece
    for one in inner:
        input_component = resolve_resource(one, resources)
        yield input_component
        yield from inner_inputs(input_component, further, resources)


def _with_broker_processors(broker: ParsedComponent, child: ParsedComponent) -> ParsedComponent:
    return replace(child, processors=(*child.processors, *broker.processors))
