"""Whether a stream rejects messages by its own words, and whether its input gives them again."""

from __future__ import annotations

from functools import partial

from streamer.config import rejecting
from streamer.plan.plan import Plan
from streamer.plan.resources import Resources, resolved
from streamer.spec import ParsedComponent


def rejects(plan: Plan) -> bool:
    """Tell whether messages may be rejected since the config says so, and nothing catches them."""
    resolve = partial(resolved, resources=plan.resources)
    return plan.strict or any(rejecting.may_reject(one, resolve) for one in plan.outputs)


def replays(component: ParsedComponent, resources: Resources) -> bool:
    """Tell whether an input gives again what is rejected: see `config.rejecting.replays`."""
    return rejecting.replays(component, partial(resolved, resources=resources))
