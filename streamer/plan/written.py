"""The outputs that the driver writes, wherever they stand inside of a stream's outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from streamer.plan.resources import Resources, resolved
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

WRITTEN: Final = frozenset({"dynamic", "file", "http_server", "stdout"})
"""Outputs whose bytes return to the driver."""

_DEDUPE: Final = "dedupe_headers"


def written_inside(
    outputs: Iterable[ParsedComponent], resources: Resources
) -> tuple[ParsedComponent, ...]:
    """Return the outputs in these that the driver writes, each place in the config once.

    Args:
        outputs: a stream's outputs, which are not among them themselves.
        resources: the plan's.
    """
    found: dict[str, ParsedComponent] = {}
    for output in outputs:
        for one in _below(output, resources, ()):
            found.setdefault(one.path, one)
    return tuple(found.values())


def is_numbered(output: ParsedComponent, resources: Resources) -> bool:
    """Tell whether an output, or one inside of it, tells messages apart by their places."""
    return any(
        isinstance(one.config, Parsed) and one.config.get(_DEDUPE) is True
        for one in all_inside([output], resources)
    )


_HANDLERS: Final = frozenset({"drop_on", "fallback", "retry"})
"""Outputs that do something else with what an output inside of them does not take."""


def cuts_tries(output: ParsedComponent, resources: Resources) -> bool:
    """Tell whether nothing hangs on how often an output inside of this one tries by itself.

    What it does not take is sent again in any case, unless something around it counts its tries.
    """
    return all(one.name not in _HANDLERS for one in all_inside([output], resources))


def output_at(
    outputs: Iterable[ParsedComponent], resources: Resources, path: str
) -> ParsedComponent | None:
    """Return the output of a config path among some and those inside of them; None without one."""
    return next((one for one in _each(outputs, resources, ()) if one.path == path), None)


def _each(
    outputs: Iterable[ParsedComponent], resources: Resources, way: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    for output in outputs:
        yield output
        one = resolved(output, resources)
        if one.path not in way:
            below = [child for child in inside(one) if child.kind == Kind.OUTPUT]
            yield one
            yield from _each(below, resources, (*way, one.path))


def all_inside(
    outputs: Iterable[ParsedComponent], resources: Resources
) -> tuple[ParsedComponent, ...]:
    """Return outputs and all that are inside of them, each place in the config once."""
    found: dict[str, ParsedComponent] = {}
    for output in outputs:
        for one in _all_below(resolved(output, resources), resources, ()):
            found.setdefault(one.path, one)
    return tuple(found.values())


def _all_below(
    output: ParsedComponent, resources: Resources, way: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    yield output
    for child in inside(output):
        if child.kind == Kind.OUTPUT:
            one = resolved(child, resources)
            if one.path not in way:
                yield from _all_below(one, resources, (*way, one.path))


def _below(
    output: ParsedComponent, resources: Resources, way: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    if output.name in WRITTEN:
        return
    for child in inside(output):
        if child.kind != Kind.OUTPUT:
            continue
        one = resolved(child, resources)
        if one.path in way:
            continue
        if one.name in WRITTEN:
            yield one
            # Of what is inside of a `dynamic` the driver takes care as it comes and goes.
            continue
        yield from _below(one, resources, (*way, one.path))
