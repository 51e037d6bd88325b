"""Whether a stream answers requests, so that inputs know whether to hold them open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamer.plan.plan import Plan
from streamer.plan.rejecting import rejects
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

_ANSWERS = "sync_response"


def is_answered(plan: Plan) -> bool:
    """Tell whether anything in a plan answers the requests that its messages came with.

    What it may reject by its own words it answers with an error. Windows keep messages for longer
    than a request waits, so none waits for them.
    """
    if plan.window is not None:
        return False
    return replies(plan) or rejects(plan)


def replies(plan: Plan) -> bool:
    """Tell whether anything in a plan gives messages back to who has sent some."""
    return any(_answers(one) for one in _all(_roots(plan)))


def _answers(component: ParsedComponent) -> bool:
    if component.name == _ANSWERS:
        return True
    # An output may give back what a server has said.
    return component.kind == Kind.OUTPUT and bool(
        isinstance(component.config, Parsed) and component.config.get("propagate_response")
    )


def _roots(plan: Plan) -> Iterator[ParsedComponent]:
    yield from (plan.input, plan.buffer, *plan.processors, *plan.outputs)
    yield from (found for (kind, _), found in plan.resources.items() if kind in _WORKING)


_WORKING = (Kind.INPUT, Kind.PROCESSOR, Kind.OUTPUT)


def _all(components: Iterable[ParsedComponent]) -> Iterator[ParsedComponent]:
    for one in components:
        yield one
        yield from _all(one.processors)
        yield from _all(inside(one))
