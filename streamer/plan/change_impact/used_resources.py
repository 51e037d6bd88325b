"""The resources that a part of a config uses; changes of others do not matter to that part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamer.components import catalog
from streamer.sdk.spec import Field, Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.component import Resources

ResourceKey = tuple[Kind, str]


def find_used_resources(
    roots: Iterable[ParsedComponent], resources: Resources, with_input_processors: bool = True
) -> set[ResourceKey]:
    """Return the resources that components refer to, and those that these refer to in turn.

    Args:
        roots: the components.
        resources: of the config.
        with_input_processors: whether the processors beside inputs are followed too.
    """
    resource_keys: set[ResourceKey] = set()
    waiting = list(roots)
    while waiting:
        for key in _references(waiting.pop(), with_input_processors):
            if key in resources and key not in resource_keys:
                resource_keys.add(key)
                waiting.append(resources[key])
    return resource_keys


def _references(component: ParsedComponent, with_input_processors: bool) -> Iterator[ResourceKey]:
    if component.name == "resource":
        yield component.kind, component.config
    spec = catalog.find_spec(component.kind, component.name)
    if spec is not None:
        yield from _references_in_field(spec.body, component.config, with_input_processors)
        if spec.references is not None:
            yield from ((kind, label) for _, kind, label in spec.references(component.config))
    if with_input_processors or component.kind != Kind.INPUT:
        for processor in component.processors:
            yield from _references(processor, with_input_processors)


def _references_in_field(
    field: Field, value: Any, with_input_processors: bool
) -> Iterator[ResourceKey]:
    if isinstance(value, ParsedComponent):
        yield from _references(value, with_input_processors)
    elif isinstance(value, ParsedFields) and field.children:
        for child in field.children:
            if child.name in value:
                yield from _references_in_field(child, value[child.name], with_input_processors)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _references_in_field(field, item, with_input_processors)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _references_in_field(field, item, with_input_processors)
    elif field.refers is not None and isinstance(value, str) and value:
        yield field.refers, value
