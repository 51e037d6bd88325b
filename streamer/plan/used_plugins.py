"""Plugins that a config uses, and the versions of their packages."""

from __future__ import annotations

from collections.abc import Mapping

from streamer.components import catalog
from streamer.config import Config
from streamer.sdk.spec.children import walk_components


def list_used_plugins(config: Config) -> tuple[tuple[str, str], ...]:
    """Return the plugins of a config, each with its package and version.

    They are named as `processor shout`, those that mappings call as `bloblang method shout`.
    """
    roots = (*config.components, config.output, *config.resources.values())
    used: dict[str, str] = {}
    for component in walk_components(roots):
        spec = catalog.find_spec(component.kind, component.name)
        if spec is not None and spec.distribution:
            used[f"{spec.kind} {spec.name}"] = spec.distribution
    used |= {f"bloblang {name}": package for name, package in config.inputs.plugins.items()}
    return tuple(sorted(used.items()))


def describe_plugin_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what differs between the plugins of two runs of a stream, in words.

    Args:
        before: the packages and versions of the earlier run, by component.
        now: those of this run.

    Example:
        >>> describe_plugin_changes({"processor shout": "a 1.0"}, {"processor shout": "a 1.1"})
        ['processor shout comes from a 1.1, and came from a 1.0']
    """
    return [
        f"{component} comes from {now[component]}, and came from {source}"
        for component, source in sorted(before.items())
        if component in now and now[component] != source
    ]
