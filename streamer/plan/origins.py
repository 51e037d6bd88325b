"""Which input a piece is from, where there are several, and what its messages go through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from streamer.inputs.broker import children
from streamer.plan.resources import Resources, resolved
from streamer.source.several import ChildPiece
from streamer.spec import Kind, ParsedComponent
from streamer.spec.inside import inside


def origin_of(component: ParsedComponent, piece: Any, resources: Resources) -> ParsedComponent:
    """Return the input that a piece is from, with the processors of all that it is in.

    Args:
        component: the plan's input.
        piece: what its source has made.
        resources: the plan's.
    """
    if component.name != "broker" or not isinstance(piece, ChildPiece):
        return component
    child = resolved(children(component)[piece.child], resources)
    return _within(component, origin_of(child, piece.piece, resources))


def origin_of_way(
    component: ParsedComponent, way: Sequence[int], resources: Resources
) -> ParsedComponent:
    """Return what `origin_of` does for a piece that came this way (`source.several.way_of`).

    A config that was changed meanwhile may have no such input any more: then it is the whole one.
    """
    if component.name != "broker" or not way or way[0] >= len(children(component)):
        return component
    child = resolved(children(component)[way[0]], resources)
    return _within(component, origin_of_way(child, way[1:], resources))


def origins(component: ParsedComponent, resources: Resources) -> Iterator[ParsedComponent]:
    """Return the inputs that an input reads from, itself if it is no broker; as `origin_of`."""
    component = resolved(component, resources)
    if component.name != "broker":
        yield component
        return
    for child in component.config["inputs"]:
        for one in origins(child, resources):
            yield _within(component, one)


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
    inner = [one for one in inside(component) if one.kind == Kind.INPUT]
    further = None
    if component.name == "broker" and isinstance(piece, ChildPiece):
        inner, further = [children(component)[piece.child]], piece.piece
    for one in inner:
        found = resolved(one, resources)
        yield found
        yield from inner_inputs(found, further, resources)


def _within(broker: ParsedComponent, child: ParsedComponent) -> ParsedComponent:
    return replace(child, processors=(*child.processors, *broker.processors))
