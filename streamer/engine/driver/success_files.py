"""Success files: empty files that say that their directory is complete."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Container, Iterable, Set

from streamer.connectors.locations.location_files import LocationFiles
from streamer.core.disk import sync_directory
from streamer.core.locations import is_location
from streamer.core.permissions import Permissions
from streamer.engine.report.result_frame import Frame


def list_success_files(
    routes: Iterable[str], written: Set[str], permissions: Permissions
) -> list[str]:
    """Return the success files of directories that something is written to, each once.

    Args:
        routes: the success files that the messages of a micro-batch ask for.
        written: the directories that it writes to.
        permissions: which files may be written.
    """
    unique = dict.fromkeys(routes)
    directories = {one.rstrip("/") or one for one in written}
    return [permissions.file(route) for route in unique if posixpath.dirname(route) in directories]


def drop_existing_objects(
    paths: Iterable[str], objects: LocationFiles, own: Container[str]
) -> list[str]:
    """Return success files without objects that an earlier micro-batch has made: these stay.

    Args:
        paths: of the success files.
        objects: looks at those that are URLs.
        own: what an earlier try of the same micro-batch may have made.

    Raises:
        OSError: a store does not answer.
    """
    return [
        path
        for path in paths
        if path in own or not is_location(path) or not _is_object(path, objects)
    ]


def _is_object(url: str, objects: LocationFiles) -> bool:
    try:
        objects.version(url)
    except FileNotFoundError:
        return False
    return True


def is_success_file(frame: Frame, name: str) -> bool:
    """Return whether a frame says that a directory is complete.

    Args:
        frame: of an output.
        name: of its success files; empty for none.
    """
    return bool(name) and not frame.body and posixpath.basename(frame.route) == name


def make_success_files(paths: Iterable[str], objects: LocationFiles | None = None) -> None:
    """Make empty files, after what stands beside them is on the disk.

    Args:
        paths: of the files.
        objects: writes those that are URLs.

    Raises:
        OSError: one cannot be made.
    """
    for path in paths:
        if objects is not None and is_location(path):
            objects.put(path, b"")
            continue
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            sync_directory(directory)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
            sync_directory(directory)
        finally:
            os.close(directory)
