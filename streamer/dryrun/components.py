"""Connect the inputs and outputs of a plan, wherever they stand in it, and its resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from streamer.catalog import build_context
from streamer.dryrun.check import Check, checked
from streamer.plan import Plan
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.probe import Probing

_CONNECTED: Final = (Kind.INPUT, Kind.OUTPUT, Kind.CACHE, Kind.RATE_LIMIT)


def component_checks(
    plan: Plan, wanted: Callable[[ParsedComponent], bool] = lambda component: True
) -> Iterator[Check]:
    """Build every processor, and connect every input, output, cache and rate limit.

    A component inside of another (an output of a `broker`) is connected by itself.

    Args:
        plan: the plan.
        wanted: tells which components to look at.
    """
    seen: list[int] = []
    roots = [plan.input, plan.buffer, *plan.processors, *plan.outputs, *plan.resources.values()]
    for root in roots:
        for component in _all(root):
            # `late_output` is one of the resources too.
            if id(component) in seen:
                continue
            seen.append(id(component))
            looked_at = component.kind in _CONNECTED or component.kind == Kind.PROCESSOR
            if looked_at and wanted(component):
                yield from _check(plan, component)


def _check(plan: Plan, component: ParsedComponent) -> Iterator[Check]:
    label = f" [{component.label}]" if component.label else ""
    name = f"{component.path or component.kind}: {component.name}{label}"

    def connect() -> str:
        built = build_context(plan.resources).build(component)
        if isinstance(built, Probing):
            return built.probe()
        return ""

    check = checked(name, connect)
    # That a processor was built is no news.
    if component.kind in _CONNECTED or check.ok is False:
        yield check


def _all(component: ParsedComponent) -> Iterator[ParsedComponent]:
    yield component
    for processor in component.processors:
        yield from _all(processor)
    yield from _inside(component.config)


def _inside(value: Any) -> Iterator[ParsedComponent]:
    if isinstance(value, ParsedComponent):
        yield from _all(value)
    elif isinstance(value, Parsed | Mapping):
        for item in value.values():
            yield from _inside(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _inside(item)
