"""Packages that a config's code needs on workers, beside this program's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.config import Config
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.children import child_components

_REQUIREMENTS: Final = "requirements"
_PROCESSOR: Final = "python"


def list_requirements(*configs: Config) -> tuple[str, ...]:
    """Return the requirements of all processors `python` of configs, each once, sorted."""
    requirements = {
        text
        for config in configs
        for root in (*config.components, *config.outputs, *config.resources.values())
        for component in _walk_components(root)
        if (component.kind, component.name) == (Kind.PROCESSOR, _PROCESSOR)
        for text in component.config[_REQUIREMENTS]
    }
    return tuple(sorted(requirements))


def _walk_components(component: ParsedComponent) -> Iterator[ParsedComponent]:
    yield component
    for child in (*component.processors, *child_components(component)):
        yield from _walk_components(child)
