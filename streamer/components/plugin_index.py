"""Index of the components that other packages provide, by their entry points.

A package names each of its components in the group `streamer.components`, as `KIND.NAME`:

    [project.entry-points."streamer.components"]
    "processor.shout" = "streamer_shout.shout"

Nothing of a package is imported here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamer.components.component_names import COMPONENTS
from streamer.core.entry_points import GROUP, find_plugin_distributions
from streamer.sdk.spec import Kind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_FUNCTIONS_PREFIX: Final = "bloblang_"
"""Functions and methods of mappings: `bloblang.plugin_functions` has them."""

NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
"""A component's name."""


class PluginEntry(NamedTuple):
    """An entry point that names a component.

    Attributes:
        kind: the component's kind.
        name: its name.
        distribution: the package that has it, and its version: `streamer-shout 1.2.0`.
        point: the entry point.
    """

    kind: Kind
    name: str
    distribution: str
    point: EntryPoint


class PluginIndex(NamedTuple):
    """The components of other packages.

    Attributes:
        entries: those that may be loaded.
        problems: the reasons why some are left out, in whole sentences.
        left_out: the same by component, where one is meant.
    """

    entries: Mapping[tuple[Kind, str], PluginEntry]
    problems: tuple[str, ...]
    left_out: Mapping[tuple[Kind, str], str]


@cache
def read_plugin_index() -> PluginIndex:
    """Return the components that installed packages provide; read once in a process."""
    by_name: dict[tuple[Kind, str], list[PluginEntry]] = {}
    problems: list[str] = []
    left_out: dict[tuple[Kind, str], str] = {}
    for distribution in find_plugin_distributions():
        source = f"{distribution.metadata['Name']} {distribution.version}"
        for point in distribution.entry_points:
            if point.group != GROUP or point.name.startswith(_FUNCTIONS_PREFIX):
                continue
            entry = _parse_entry(point, source)
            if entry is None:
                problems.append(
                    f"{point.name!r} of the package {source} is left out: its entry point has no "
                    "name such as processor.shout, with the kind and the component's own name"
                )
                continue
            by_name.setdefault((entry.kind, entry.name), []).append(entry)
    for key, entries in list(by_name.items()):
        if reason := _find_name_problem(entries):
            problems.append(reason)
            del by_name[key]
            if entries[0].name not in COMPONENTS[entries[0].kind]:
                left_out[key] = reason
    return PluginIndex({key: one[0] for key, one in by_name.items()}, tuple(problems), left_out)


def _parse_entry(point: EntryPoint, source: str) -> PluginEntry | None:
    kind, _, name = point.name.partition(".")
    if kind not in list(Kind) or not NAME.fullmatch(name):
        return None
    return PluginEntry(Kind(kind), name, source, point)


def _find_name_problem(entries: list[PluginEntry]) -> str:
    """Return the reason why a name is left out; "" for none."""
    first = entries[0]
    sources = sorted(entry.distribution for entry in entries)
    of = f"{first.kind} {first.name!r} of the package {sources[0]}"
    if first.name in COMPONENTS[first.kind]:
        of = f"{first.kind} {first.name!r} of {' and '.join(sources)}"
        return f"{of} is left out: streamer has a component of that name itself, which stays"
    if len(entries) > 1:
        of = f"{first.kind} {first.name!r}"
        return (
            f"{of} is left out: {' and '.join(sources)} both provide it, and neither has "
            "precedence; uninstall all but one"
        )
    return ""
