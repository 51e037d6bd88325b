"""Whether a stream rejects messages by its own words, and whether its input gives them again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.plan.plan import Plan
from streamer.plan.resources import Resources, resolved
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

REPLAYS: Final = "auto_replay_nacks"


def rejects(plan: Plan) -> bool:
    """Tell whether messages may be rejected since the config says so, and nothing catches them.

    What a receiver refuses is not meant: of that the config says nothing.
    """
    return plan.strict or any(may_reject(output, plan.resources) for output in plan.outputs)


def may_reject(output: ParsedComponent, resources: Resources, way: tuple[str, ...] = ()) -> bool:
    """Tell whether an output rejects messages by the config's own words.

    Args:
        output: the output.
        resources: what it may refer to.
        way: the paths of the outputs around it.
    """
    output = resolved(output, resources)
    if output.path in way:
        return False
    if output.name in ("reject", "reject_errored"):
        return True
    config = output.config
    if isinstance(config, Parsed):
        if output.name == "switch" and config["strict_mode"]:
            return True
        if output.name == "drop_on" and config["error"]:
            return False
    children = [one for one in inside(output) if one.kind == Kind.OUTPUT]
    if output.name == "fallback":
        # What one rejects goes to the next.
        children = children[-1:]
    return any(may_reject(child, resources, (*way, output.path)) for child in children)


def replays(component: ParsedComponent, resources: Resources) -> bool:
    """Tell whether an input gives again what is rejected.

    Where several inputs are inside of it, and it is not known which one a message is from, nothing
    is dropped that one of them would give again.
    """
    return any(_gives_again(one) for one in _sources(component, resources, ()))


def _gives_again(component: ParsedComponent) -> bool:
    config = component.config
    return not isinstance(config, Parsed) or bool(config.get(REPLAYS, True))


def _sources(
    component: ParsedComponent, resources: Resources, way: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    """Return the inputs inside of an input that have none inside; itself where it has none."""
    component = resolved(component, resources)
    if component.path in way:
        return
    children = [one for one in inside(component) if one.kind == Kind.INPUT]
    if not children:
        yield component
    for child in children:
        yield from _sources(child, resources, (*way, component.path))
