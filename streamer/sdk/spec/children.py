"""The components that stand inside of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from streamer.sdk.spec.component import ParsedComponent

T = TypeVar("T")


def child_components(component: ParsedComponent) -> Iterator[ParsedComponent]:
    """Return the components in a component's own fields, not those within these in turn.

    Its `processors`, which stand beside it, are not among them.
    """
    return find_leaves(component.config, ParsedComponent)


def walk_components(components: Iterable[ParsedComponent]) -> Iterator[ParsedComponent]:
    """Return components, and all that stand beside or inside of each, however deep.

    Those of a component follow it: first its `processors`. One that stands twice comes twice.
    """
    for one in components:
        yield one
        yield from walk_components(one.processors)
        yield from walk_components(child_components(one))


def find_leaves(value: Any, kind: type[T]) -> Iterator[T]:
    """Return the values of a type in maps and lists, however deep; not those within these."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from find_leaves(item, kind)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_leaves(item, kind)
