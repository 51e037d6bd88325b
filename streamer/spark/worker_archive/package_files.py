"""Files of the packages that this program needs, as they are installed here."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import streamer
from streamer.core.entry_points import find_plugin_distributions
from streamer.core.errors import StreamerError
from streamer.core.extras import DISTRIBUTION, EXTRAS, install_command

_PACKAGE: Final = "streamer"
PROGRAM_DISTRIBUTION: Final = DISTRIBUTION
_JAVA: Final = "java"

_EXCLUDED_FILES: Final = (
    # Executors bring Spark's jars; Python's part must be that of the driver, and goes along.
    re.compile(r"pyspark/(jars|bin|sbin|examples|data|licenses|deps)/"),
    re.compile(r"(^|/)tests/"),
    re.compile(r"\.(a|h|hpp|pxd|pyx|pyi|c|cc|cpp)$"),
    re.compile(r"(^|/)\.\.(/|$)"),
)

_DISTRIBUTION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Packages:
    """The content of the archive.

    Attributes:
        versions: of the distributions, by name.
        files: where each file lies here, by its path below the directory of all packages.
        plugin_files: those of `files` that belong to plugins.
    """

    versions: dict[str, str]
    files: dict[str, Path]
    plugin_files: frozenset[str] = frozenset()


def find_packages(requirements: Iterable[str] = ()) -> Packages:
    """Find this program's files, and those of all that it requires.

    Of the program's own extras, what is installed here goes along: a worker may need whatever the
    driver could use. Java does not: executors run in one. Plugins go along with all that they
    require.

    Args:
        requirements: further packages, as pip names them, with what they require.

    Raises:
        StreamerError: a requirement is not installed.
    """
    versions: dict[str, str] = {}
    files: dict[str, Path] = {}
    plugins = list(find_plugin_distributions())
    for distribution in _walk_requirements(requirements, plugins):
        about = distribution.metadata  # parsed each time that it is asked for
        name = _normalise_name(about["Name"])
        versions[name] = about["Version"]
        if name != PROGRAM_DISTRIBUTION:
            files.update(_distribution_files(distribution))
    plugin_files: dict[str, Path] = {}
    for distribution in plugins:
        plugin_files.update(_distribution_files(distribution))
        plugin_files.update(_plugin_package_files(distribution))
    files.update(plugin_files)
    # An editable install lists no files of the program.
    files.update(_program_files())
    return Packages(
        dict(sorted(versions.items())), dict(sorted(files.items())), frozenset(plugin_files)
    )


class _NeededDistribution(NamedTuple):
    """A distribution that is required.

    Attributes:
        name: its name, normalised.
        extra: one of its extras; empty for what it is without any.
        by: what requires it; empty for the program itself.
        optional: whether only an extra of the program requires it, so that it may be missing.
    """

    name: str
    extra: str
    by: str
    optional: bool


def _walk_requirements(
    more: Iterable[str] = (), plugins: Iterable[metadata.Distribution] = ()
) -> Iterator[metadata.Distribution]:
    """Return the distributions of the program and of plugins, and all that these require.

    Of the program's extras, those are left out that are not installed.

    Args:
        more: further requirements, as pip names them.
        plugins: distributions that bring components.
    """
    seen: set[tuple[str, str]] = set()
    yielded: set[str] = set()
    # What must be there comes first: nothing that is required is taken for optional.
    waiting = deque([_NeededDistribution(PROGRAM_DISTRIBUTION, "", "", False)])
    waiting += _read_requirements(more)
    waiting += [
        _NeededDistribution(_normalise_name(one.metadata["Name"]), "", "", False) for one in plugins
    ]
    waiting += [
        _NeededDistribution(PROGRAM_DISTRIBUTION, extra, "", True)
        for extra in EXTRAS
        if extra != _JAVA
    ]
    while waiting:
        needed = waiting.popleft()
        if (needed.name, needed.extra) in seen:
            continue
        try:
            distribution = metadata.distribution(needed.name)
        except metadata.PackageNotFoundError:
            if needed.optional:
                continue
            reason = f", which {needed.by} requires" if needed.by else ""
            raise StreamerError(
                f"the package {needed.name}{reason}, is not installed here, so it cannot be packed "
                f"for workers: {install_command()}"
            ) from None
        seen.add((needed.name, needed.extra))
        if needed.name not in yielded:
            yielded.add(needed.name)
            yield distribution
        required = _find_requirements(distribution, needed)
        waiting.extend(required) if needed.optional else waiting.extendleft(required)


def _read_requirements(texts: Iterable[str]) -> Iterator[_NeededDistribution]:
    """Return what requirements of code in Python need."""
    from packaging.requirements import Requirement

    for text in texts:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate():
            for extra in ("", *sorted(requirement.extras)):
                name = _normalise_name(requirement.name)
                yield _NeededDistribution(name, extra, "the config", False)


def _find_requirements(
    distribution: metadata.Distribution, of: _NeededDistribution
) -> Iterator[_NeededDistribution]:
    """Return what a distribution requires by one of its extras, or without one."""
    from packaging.requirements import Requirement

    for text in distribution.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        # With an extra, what is required without any is required already.
        always = marker is None or marker.evaluate({"extra": ""})
        by_extra = marker is not None and not always and marker.evaluate({"extra": of.extra})
        if by_extra if of.extra else always:
            for extra in ("", *sorted(requirement.extras)):
                yield _NeededDistribution(
                    _normalise_name(requirement.name), extra, of.name, of.optional
                )


def _normalise_name(name: str) -> str:
    match = _DISTRIBUTION_NAME.match(name)
    return re.sub(r"[-_.]+", "-", match.group()).lower() if match else name


def _distribution_files(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    for file in distribution.files or ():
        path = file.as_posix()
        if _is_included(path):
            place = Path(str(file.locate()))
            if place.is_file():
                yield path, place


def _plugin_package_files(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Return the files of the packages that a plugin's entry points name, as Python finds them.

    An editable install lists none of them.
    """
    tops = {point.module.partition(".")[0] for point in distribution.entry_points}
    for top in sorted(tops):
        spec = find_spec(top)
        if spec is None:
            continue
        if spec.submodule_search_locations is None:
            if spec.origin and spec.origin.endswith(".py"):
                yield f"{top}.py", Path(spec.origin)
            continue
        for root in map(Path, spec.submodule_search_locations):
            for place in sorted(root.rglob("*")):
                path = PurePosixPath(top, *place.relative_to(root).parts).as_posix()
                if place.is_file() and _is_included(path):
                    yield path, place


def _program_files() -> Iterator[tuple[str, Path]]:
    root = Path(streamer.__file__).resolve().parent
    for place in sorted(root.rglob("*")):
        path = PurePosixPath(_PACKAGE, *place.relative_to(root).parts).as_posix()
        if place.is_file() and _is_included(path):
            yield path, place


def _is_included(path: str) -> bool:
    if "__pycache__/" in path and f".{sys.implementation.cache_tag}." not in path:
        return False
    return not any(pattern.search(path) for pattern in _EXCLUDED_FILES)
