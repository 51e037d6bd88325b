"""Entry points of the installed packages that have components or functions for this program.

The files of entry points are searched for the group first, because the library that reads them
takes longer to import than all files take to read.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import Distribution

GROUP: Final = ".".join(("streamer", "components"))
"""The group of entry points; as one text it would look like an import of a module of ours."""

_HEAD: Final = f"[{GROUP}]".encode()
_METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")


def find_plugin_distributions() -> Iterator[Distribution]:
    """Return the installed packages that have entry points of the group; each once."""
    seen: set[str] = set()
    for place in sys.path:
        for distribution, name in _find_in_place(place or "."):
            if name not in seen:
                seen.add(name)
                yield distribution


def _find_in_place(place: str) -> Iterator[tuple[Distribution, str]]:
    """Return the packages of one entry of Python's path that have the group, and their names."""
    try:
        names = sorted(os.listdir(place))
    except NotADirectoryError:
        if place.endswith((".zip", ".whl", ".egg")):
            yield from _find_in_archive(place)
        return
    except OSError:
        return
    for name in names:
        if not name.endswith(_METADATA_SUFFIXES) or not _has_group(place, name):
            continue
        # Imported here: nobody needs it without a plugin.
        from importlib.metadata import PathDistribution

        yield PathDistribution(Path(place, name)), _normalise_name(name)


def _has_group(place: str, name: str) -> bool:
    try:
        with open(os.path.join(place, name, "entry_points.txt"), "rb") as file:
            return _HEAD in file.read().replace(b" ", b"")
    except OSError:
        return False


def _find_in_archive(place: str) -> Iterator[tuple[Distribution, str]]:
    from importlib.metadata import distributions

    for distribution in distributions(path=[place]):
        if any(point.group == GROUP for point in distribution.entry_points):
            yield distribution, _normalise_name(distribution.metadata["Name"].replace("-", "_"))


def _normalise_name(name: str) -> str:
    """Return the name of a package from that of its directory, as all spellings of it have it."""
    for suffix in _METADATA_SUFFIXES:
        name = name.removesuffix(suffix)
    return re.sub(r"[-_.]+", "_", name.partition("-")[0]).lower()
