"""Success files: empty files that say that their directory is complete."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Set

from streamer.core.disk import sync_directory
from streamer.core.permissions import Permissions


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
    return [permissions.file(route) for route in unique if posixpath.dirname(route) in written]


def make_success_files(paths: Iterable[str]) -> None:
    """Make empty files, after what stands beside them is on the disk.

    Raises:
        OSError: one cannot be made.
    """
    for path in paths:
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            sync_directory(directory)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
            sync_directory(directory)
        finally:
            os.close(directory)
