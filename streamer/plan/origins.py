"""Which input a piece is from, where there are several, and what its messages go through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from streamer.inputs.broker import children
from streamer.plan.resources import Resources, resolved
from streamer.source.several import ChildPiece
from streamer.spec import ParsedComponent


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


def origins(component: ParsedComponent, resources: Resources) -> Iterator[ParsedComponent]:
    """Return the inputs that an input reads from, itself if it is no broker; as `origin_of`."""
    component = resolved(component, resources)
    if component.name != "broker":
        yield component
        return
    for child in component.config["inputs"]:
        for one in origins(child, resources):
            yield _within(component, one)


def _within(broker: ParsedComponent, child: ParsedComponent) -> ParsedComponent:
    return replace(child, processors=(*child.processors, *broker.processors))
