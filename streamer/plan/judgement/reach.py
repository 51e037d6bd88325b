"""Which resources a part of a config uses, so that others can change without anybody noticing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamer import catalog
from streamer.plan.resources import Resources
from streamer.spec import Field, Kind, Parsed, ParsedComponent

Key = tuple[Kind, str]


def used(roots: Iterable[ParsedComponent], resources: Resources, beside: bool = True) -> set[Key]:
    """Return the resources that components refer to, and those that these refer to in turn.

    Args:
        roots: the components.
        resources: of the config.
        beside: whether the processors beside inputs are followed too.
    """
    found: set[Key] = set()
    waiting = list(roots)
    while waiting:
        for key in _named(waiting.pop(), beside):
            if key in resources and key not in found:
                found.add(key)
                waiting.append(resources[key])
    return found


def _named(component: ParsedComponent, beside: bool) -> Iterator[Key]:
    if component.name == "resource":
        yield component.kind, component.config
    spec = catalog.spec(component.kind, component.name)
    if spec is not None:
        yield from _in(spec.body, component.config, beside)
        if spec.references is not None:
            yield from ((kind, label) for _, kind, label in spec.references(component.config))
    if beside or component.kind != Kind.INPUT:
        for processor in component.processors:
            yield from _named(processor, beside)


def _in(field: Field, value: Any, beside: bool) -> Iterator[Key]:
    if isinstance(value, ParsedComponent):
        yield from _named(value, beside)
    elif isinstance(value, Parsed) and field.children:
        for child in field.children:
            if child.name in value:
                yield from _in(child, value[child.name], beside)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _in(field, item, beside)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in(field, item, beside)
    elif field.refers is not None and isinstance(value, str) and value:
        yield field.refers, value
