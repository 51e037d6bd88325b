"""Whether a stream rejects messages by its own words, and whether its input gives them again."""

from __future__ import annotations

from functools import partial

from streamer.config.lint import rejected_messages
from streamer.plan.component_lookup import resolve_resource
from streamer.plan.plan import Plan
from streamer.sdk.spec import ParsedComponent
from streamer.sdk.spec.component import Resources


def rejects(plan: Plan) -> bool:
    """Return whether messages may be rejected as the config says, and nothing catches them."""
    resolve = partial(resolve_resource, resources=plan.resources)
    return plan.strict or any(rejected_messages.may_reject(one, resolve) for one in plan.outputs)


def replays(component: ParsedComponent, resources: Resources) -> bool:
    """Return whether an input redelivers rejected messages: as `replays_rejected` of the lint."""
    return rejected_messages.replays_rejected(
        component, partial(resolve_resource, resources=resources)
    )
