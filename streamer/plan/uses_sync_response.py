"""Whether a stream answers requests, so that inputs know whether to hold them open."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.plan.plan import Plan
from streamer.plan.rejection import rejects
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import walk_components

_SYNC_RESPONSE = "sync_response"


def is_answered(plan: Plan) -> bool:
    """Return whether anything in a plan answers the requests that its messages came with.

    What it may reject by its own words it answers with an error. Windows keep messages for longer
    than a request waits, so none waits for them.
    """
    if plan.window is not None:
        return False
    return gives_replies(plan) or rejects(plan)


def gives_replies(plan: Plan) -> bool:
    """Return whether anything in a plan gives messages back to who has sent some."""
    return any(_sends_reply(one) for one in walk_components(_root_components(plan)))


def _sends_reply(component: ParsedComponent) -> bool:
    if component.name == _SYNC_RESPONSE:
        return True
    # An output may return a server's answer.
    return component.kind == Kind.OUTPUT and bool(
        isinstance(component.config, ParsedFields) and component.config.get("propagate_response")
    )


def _root_components(plan: Plan) -> Iterator[ParsedComponent]:
    yield from (plan.input, *plan.all_buffers, *plan.all_processors, *plan.outputs)
    yield from (
        component for (kind, _), component in plan.resources.items() if kind in _PROCESSING_KINDS
    )


_PROCESSING_KINDS = (Kind.INPUT, Kind.PROCESSOR, Kind.OUTPUT)
