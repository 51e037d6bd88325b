"""What the packages that this program needs consist of, as they are installed here."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import streamer
from streamer.errors import StreamerError
from streamer.extras import DISTRIBUTION, EXTRAS, install_command

_PACKAGE: Final = "streamer"
PROGRAM: Final = DISTRIBUTION
_JAVA: Final = "java"

_LEFT_OUT: Final = (
    # Executors bring Spark's jars; Python's part must be that of the driver, and goes along.
    re.compile(r"pyspark/(jars|bin|sbin|examples|data|licenses|deps)/"),
    re.compile(r"(^|/)tests/"),
    re.compile(r"\.(a|h|hpp|pxd|pyx|pyi|c|cc|cpp)$"),
    re.compile(r"(^|/)\.\.(/|$)"),
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Packages:
    """What goes into the archive.

    Attributes:
        versions: of the distributions, by name.
        files: where each file lies here, by its path below the directory of all packages.
    """

    versions: dict[str, str]
    files: dict[str, Path]


def needed() -> Packages:
    """Find this program's files, and those of all that it requires.

    Of the program's own extras, what is installed here goes along: a worker may need whatever the
    driver could use. Java does not: executors run in one.

    Raises:
        StreamerError: a requirement is not installed.
    """
    versions: dict[str, str] = {}
    files: dict[str, Path] = {}
    for distribution in _closure():
        about = distribution.metadata  # parsed each time that it is asked for
        name = _normal(about["Name"])
        versions[name] = about["Version"]
        if name != PROGRAM:
            files.update(_files(distribution))
    # An editable install lists no files of the program.
    files.update(_program())
    return Packages(dict(sorted(versions.items())), dict(sorted(files.items())))


class _Wanted(NamedTuple):
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


def _closure() -> Iterator[metadata.Distribution]:
    """Return the program's distribution and all that it requires, by the extras asked for."""
    seen: set[tuple[str, str]] = set()
    named: set[str] = set()
    # What must be there comes first: nothing that is required is taken for optional.
    waiting = deque([_Wanted(PROGRAM, "", "", False)])
    waiting += [_Wanted(PROGRAM, extra, "", True) for extra in EXTRAS if extra != _JAVA]
    while waiting:
        wanted = waiting.popleft()
        if (wanted.name, wanted.extra) in seen:
            continue
        try:
            found = metadata.distribution(wanted.name)
        except metadata.PackageNotFoundError:
            if wanted.optional:
                continue
            asked = f", which {wanted.by} requires" if wanted.by else ""
            raise StreamerError(
                f"the package {wanted.name}{asked}, is not installed here, so it cannot be packed "
                f"for workers: {install_command()}"
            ) from None
        seen.add((wanted.name, wanted.extra))
        if wanted.name not in named:
            named.add(wanted.name)
            yield found
        required = _required(found, wanted)
        waiting.extend(required) if wanted.optional else waiting.extendleft(required)


def _required(distribution: metadata.Distribution, of: _Wanted) -> Iterator[_Wanted]:
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
                yield _Wanted(_normal(requirement.name), extra, of.name, of.optional)


def _normal(name: str) -> str:
    found = _NAME.match(name)
    return re.sub(r"[-_.]+", "-", found.group()).lower() if found else name


def _files(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    for file in distribution.files or ():
        path = file.as_posix()
        if _wanted(path):
            place = Path(str(file.locate()))
            if place.is_file():
                yield path, place


def _program() -> Iterator[tuple[str, Path]]:
    root = Path(streamer.__file__).resolve().parent
    for place in sorted(root.rglob("*")):
        path = PurePosixPath(_PACKAGE, *place.relative_to(root).parts).as_posix()
        if place.is_file() and _wanted(path):
            yield path, place


def _wanted(path: str) -> bool:
    if "__pycache__/" in path and f".{sys.implementation.cache_tag}." not in path:
        return False
    return not any(pattern.search(path) for pattern in _LEFT_OUT)
