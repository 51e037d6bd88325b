"""Packages that a config's code needs on workers, beside this program's own."""

from __future__ import annotations

from typing import Final

from streamer.config import Config
from streamer.sdk.spec import Kind
from streamer.sdk.spec.children import walk_components

_REQUIREMENTS: Final = "requirements"
_PROCESSOR: Final = "python"


def list_requirements(*configs: Config) -> tuple[str, ...]:
    """Return the requirements of all processors `python` of configs, each once, sorted."""
    requirements = {
        text
        for config in configs
        for component in walk_components(
            (*config.components, *config.outputs, *config.resources.values())
        )
        if (component.kind, component.name) == (Kind.PROCESSOR, _PROCESSOR)
        for text in component.config[_REQUIREMENTS]
    }
    return tuple(sorted(requirements))
