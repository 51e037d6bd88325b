"""The outputs that the driver writes, wherever they stand inside of a stream's outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from streamer.plan.resources import resolve_resource
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.parsed_config import Resources

DRIVER_WRITTEN: Final = frozenset({"dynamic", "file", "http_server", "stdout"})
"""Outputs whose bytes return to the driver."""

_DEDUPE: Final = "dedupe_headers"


def find_driver_outputs(
    outputs: Iterable[ParsedComponent], resources: Resources
) -> tuple[ParsedComponent, ...]:
    """Return the outputs in these that the driver writes, each place in the config once.

    Args:
        outputs: a stream's outputs, which are not among them themselves.
        resources: the plan's.
    """
    by_path: dict[str, ParsedComponent] = {}
    for output in outputs:
        for one in _walk_driver_outputs(output, resources, ()):
            by_path.setdefault(one.path, one)
    return tuple(by_path.values())


def is_numbered(output: ParsedComponent, resources: Resources) -> bool:
    """Return whether an output, or one inside of it, tells messages apart by their places."""
    return any(
        isinstance(one.config, ParsedFields) and one.config.get(_DEDUPE) is True
        for one in flatten_outputs([output], resources)
    )


_FAILURE_HANDLERS: Final = frozenset({"drop_on", "fallback", "retry"})
"""Outputs that do something else with what an output inside of them does not take."""


def may_cut_retries(output: ParsedComponent, resources: Resources) -> bool:
    """Return whether nothing hangs on how often an output inside of this one tries by itself.

    What it does not take is sent again in any case, unless something around it counts its tries.
    """
    return all(one.name not in _FAILURE_HANDLERS for one in flatten_outputs([output], resources))


def find_output(
    outputs: Iterable[ParsedComponent], resources: Resources, path: str
) -> ParsedComponent | None:
    """Return the output of a config path among some and those inside of them; None without one."""
    return next((one for one in _walk_outputs(outputs, resources, ()) if one.path == path), None)


def _walk_outputs(
    outputs: Iterable[ParsedComponent], resources: Resources, visited: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    for output in outputs:
        yield output
        one = resolve_resource(output, resources)
        if one.path not in visited:
            below = [child for child in child_components(one) if child.kind == Kind.OUTPUT]
            yield one
            yield from _walk_outputs(below, resources, (*visited, one.path))


def flatten_outputs(
    outputs: Iterable[ParsedComponent], resources: Resources
) -> tuple[ParsedComponent, ...]:
    """Return outputs and all that are inside of them, each place in the config once."""
    by_path: dict[str, ParsedComponent] = {}
    for output in outputs:
        for one in _walk_resolved(resolve_resource(output, resources), resources, ()):
            by_path.setdefault(one.path, one)
    return tuple(by_path.values())


def _walk_resolved(
    output: ParsedComponent, resources: Resources, visited: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    yield output
    for child in child_components(output):
        if child.kind == Kind.OUTPUT:
            one = resolve_resource(child, resources)
            if one.path not in visited:
                yield from _walk_resolved(one, resources, (*visited, one.path))


def _walk_driver_outputs(
    output: ParsedComponent, resources: Resources, visited: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    if output.name in DRIVER_WRITTEN:
        return
    for child in child_components(output):
        if child.kind != Kind.OUTPUT:
            continue
        one = resolve_resource(child, resources)
        if one.path in visited:
            continue
        if one.name in DRIVER_WRITTEN:
            yield one
            # Of what is inside of a `dynamic` the driver takes care as it comes and goes.
            continue
        yield from _walk_driver_outputs(one, resources, (*visited, one.path))
