"""What the packages that this program needs consist of, as they are installed here."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Final

import streamer
from streamer.errors import StreamerError

PROGRAM: Final = "streamer"

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

    Raises:
        StreamerError: a requirement is not installed.
    """
    versions: dict[str, str] = {}
    files: dict[str, Path] = {}
    for distribution in _closure(PROGRAM):
        about = distribution.metadata  # parsed each time that it is asked for
        name = _normal(about["Name"])
        versions[name] = about["Version"]
        if name != PROGRAM:
            files.update(_files(distribution))
    # An editable install lists no files of the program.
    files.update(_program())
    return Packages(dict(sorted(versions.items())), dict(sorted(files.items())))


def _closure(name: str) -> Iterator[metadata.Distribution]:
    """Return a distribution and all that it requires, without extras."""
    seen: set[str] = set()
    waiting = [(name, "")]
    while waiting:
        wanted, by = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = metadata.distribution(wanted)
        except metadata.PackageNotFoundError:
            asked = f", which {by} requires" if by else ""
            raise StreamerError(
                f"the package {wanted}{asked}, is not installed here, so it cannot be packed for "
                "workers: install streamer with pip"
            ) from None
        yield found
        waiting += [(required, wanted) for required in _required(found)]


def _required(distribution: metadata.Distribution) -> Iterator[str]:
    from packaging.requirements import Requirement

    extras = ("", *_EXTRAS.get(_normal(distribution.metadata["Name"]), ()))
    for text in distribution.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            yield _normal(requirement.name)


_EXTRAS: Final = {"httpx2": ("http2",), "psycopg": ("binary",)}
"""Extras that this program asks for."""


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
        path = PurePosixPath(PROGRAM, *place.relative_to(root).parts).as_posix()
        if place.is_file() and _wanted(path):
            yield path, place


def _wanted(path: str) -> bool:
    if "__pycache__/" in path and f".{sys.implementation.cache_tag}." not in path:
        return False
    return not any(pattern.search(path) for pattern in _LEFT_OUT)
