"""The components that stand inside of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamer.spec.parsed import ParsedComponent


def inside(component: ParsedComponent) -> Iterator[ParsedComponent]:
    """Return the components in a component's own fields, not those within these in turn.

    Its `processors`, which stand beside it, are not among them.
    """
    return _in(component.config)


def _in(value: Any) -> Iterator[ParsedComponent]:
    if isinstance(value, ParsedComponent):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in(item)
