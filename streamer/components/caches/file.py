"""`file`: each value is a file of a directory.

"Stores each item in a directory as a file, where an item ID is the path relative to the configured
directory." There is no expiry. A value is written beside its place and then moved there, so that
whoever reads it meanwhile, in this process or in another, finds the old one or the new one whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streamer.connectors.locations.location_files import LocationError, LocationFiles
from streamer.connectors.locations.stores import location_packages
from streamer.core.execution import Execution
from streamer.core.locations import is_location, location_problem
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec

DIRECTORY: Final = "directory"

_FILE_MODE: Final = 0o644

SPEC: Final = Spec(
    Kind.CACHE,
    "file",
    "Keeps each value as a file of a directory, whose name below it is the key.",
    description=(
        "All workers of a machine share it, and it outlives the program. Values have no time: a "
        "`ttl` that is given with one has no effect, and nothing is ever removed but by `delete`. "
        "A key that leads out of the directory is an error.\n"
        "\n"
        "The directory may be a URL of objects: see [Places](../../places.md). Then all workers "
        "of all machines share it, and `add` is decided by the store."
    ),
    fields=(
        Field(
            DIRECTORY,
            "string",
            "The directory; it is made when the first value is stored. In Benthos it must exist.",
            access=Access.FILE,
            check=location_problem,
            examples=("./cache", "s3://bucket/cache"),
        ),
    ),
    requires=location_packages(DIRECTORY),
    categories=("Local",),
    limits="one for each machine; nothing expires",
)


class FileCache:
    """Values in files."""

    def __init__(self, directory: Path, permissions: Permissions = ALL) -> None:
        """Take the directory, and whether it may be used."""
        self._directory = directory
        self._permissions = permissions

    def get(self, key: str, ex: Execution) -> bytes:
        """Read the key's file."""
        path = self._path(key)
        with _map_errors(path):
            try:
                return self._permissions.read(path)
            except FileNotFoundError:
                raise KeyNotFoundError from None

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Write the key's file, or write it anew."""
        path = self._path(key)
        with _map_errors(path):
            _make_parent(path)
            with _temporary_value_file(path, value) as made:
                os.replace(made, path)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Write the key's file, which must not be there."""
        path = self._path(key)
        try:
            with _map_errors(path):
                _make_parent(path)
                with _temporary_value_file(path, value) as made:
                    os.link(made, path)
        except FileExistsError:
            raise KeyAlreadyExistsError from None

    def delete(self, key: str, ex: Execution) -> None:
        """Remove the key's file."""
        path = self._path(key)
        with _map_errors(path):
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        way = os.path.normpath(os.path.join(self._directory, key.lstrip("/")))
        inside = os.path.join(os.path.normpath(self._directory), "")
        if "\0" in key or not way.startswith(inside):
            raise CacheError(f"the key {key!r} is no path of a file below {self._directory}")
        return Path(self._permissions.file(way))


class LocationCache:
    """Values in objects below a URL."""

    def __init__(self, directory: str, permissions: Permissions = ALL) -> None:
        """Take the URL, and whether it may be used."""
        self._directory = directory.rstrip("/")
        self._files = LocationFiles(permissions)

    def get(self, key: str, ex: Execution) -> bytes:
        """Read the key's object."""
        with _map_location_errors():
            try:
                return self._files.read(self._url(key), ex)
            except FileNotFoundError:
                raise KeyNotFoundError from None

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Write the key's object."""
        with _map_location_errors():
            self._files.put(self._url(key), value)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Write the key's object, which must not be there."""
        with _map_location_errors():
            if not self._files.put(self._url(key), value, is_new=True):
                raise KeyAlreadyExistsError

    def delete(self, key: str, ex: Execution) -> None:
        """Remove the key's object."""
        with _map_location_errors():
            self._files.delete(self._url(key))

    def _url(self, key: str) -> str:
        name = key.lstrip("/")
        if not name or "\0" in name or {"", ".", ".."} & set(name.split("/")):
            raise CacheError(f"the key {key!r} is no name of an object below {self._directory}")
        return f"{self._directory}/{name}"


@contextmanager
def _map_location_errors() -> Iterator[None]:
    try:
        yield
    except LocationError as error:
        raise CacheError(str(error)) from None


def _make_parent(path: Path) -> None:
    """Make the directory of a value's file, where it is not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise CacheError(f"open {path}: {path.parent} is not a directory") from None


@contextmanager
def _map_errors(path: Path) -> Iterator[None]:
    """Let errors name a path, and not the file beside it, as Benthos words them."""
    try:
        yield
    except (FileExistsError, FileNotFoundError) as error:
        if isinstance(error, FileExistsError) or path.parent.is_dir():
            raise
        raise CacheError(f"open {path}: no such file or directory") from None
    except OSError as error:
        raise CacheError(f"open {path}: {str(error.strerror).lower()}") from None


@contextmanager
def _temporary_value_file(path: Path, value: bytes) -> Iterator[str]:
    """Give the name of a file beside a path that holds a value; it is gone when the block ends."""
    descriptor, made = tempfile.mkstemp(prefix=".", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _FILE_MODE)
            file.write(value)
        yield made
    finally:
        Path(made).unlink(missing_ok=True)


def build(parsed: ParsedFields, context: BuildContext) -> FileCache | LocationCache:
    """Take the directory."""
    if is_location(parsed[DIRECTORY]):
        return LocationCache(parsed[DIRECTORY], parsed.permissions)
    return FileCache(Path(parsed[DIRECTORY]), parsed.permissions)
