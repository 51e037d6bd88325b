"""Connect the inputs and outputs of a plan, wherever they stand in it, and its resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from streamer.components.catalog import build_context
from streamer.plan import Plan
from streamer.sdk.processing import InstrumentedProcessor
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.checks import SupportsProbe
from streamer.tools.dry_run.check import CheckResult, run_check

_CONNECTED_KINDS: Final = (Kind.INPUT, Kind.OUTPUT, Kind.CACHE, Kind.RATE_LIMIT, Kind.TABLE)


def check_components(
    plan: Plan, is_selected: Callable[[ParsedComponent], bool] = lambda component: True
) -> Iterator[CheckResult]:
    """Build every processor, and connect every input, output, cache, rate limit and table.

    A component inside of another (an output of a `broker`) is connected by itself.

    Args:
        plan: the plan.
        is_selected: tells which components to look at.
    """
    seen: list[int] = []
    roots = [plan.input, *plan.all_buffers, *plan.all_processors, *plan.outputs]
    roots += plan.resources.values()
    for root in roots:
        for component in _walk_component(root):
            # `late_output` is one of the resources too.
            if id(component) in seen:
                continue
            seen.append(id(component))
            is_checked = component.kind in _CONNECTED_KINDS or component.kind == Kind.PROCESSOR
            if is_checked and is_selected(component):
                yield from _check_component(plan, component)


def _check_component(plan: Plan, component: ParsedComponent) -> Iterator[CheckResult]:
    label = f" [{component.label}]" if component.label else ""
    name = f"{component.path or component.kind}: {component.name}{label}"

    def connect() -> str:
        built = build_context(plan.resources).build(component)
        if isinstance(built, InstrumentedProcessor):
            built = built.processor
        if isinstance(built, SupportsProbe):
            return built.probe()
        return ""

    check = run_check(name, connect)
    # That a processor was built is no news, unless it was connected.
    if component.kind in _CONNECTED_KINDS or check.ok is False or check.detail:
        yield check


def _walk_component(component: ParsedComponent) -> Iterator[ParsedComponent]:
    yield component
    for processor in component.processors:
        yield from _walk_component(processor)
    yield from _walk_value(component.config)


def _walk_value(value: Any) -> Iterator[ParsedComponent]:
    if isinstance(value, ParsedComponent):
        yield from _walk_component(value)
    elif isinstance(value, ParsedFields | Mapping):
        for item in value.values():
            yield from _walk_value(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _walk_value(item)
