"""The files that the paths of a command line mean."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator

_YAML_SUFFIXES = (".yaml", ".yml")


def expand_paths(paths: Iterable[str]) -> Iterator[str]:
    """Return the files that paths mean; one that does not exist stays, to be reported.

    Args:
        paths: files, globs, and directories (`DIR`, `DIR/...`), which stand for all YAML files
            below them.
    """
    for path in paths:
        if path.endswith("..."):
            path = path[:-3] or "."
        if os.path.isdir(path):
            yield from _find_yaml_files(path)
        else:
            yield from expand_globs([path])


def expand_globs(paths: Iterable[str]) -> Iterator[str]:
    """Return the files that paths and globs mean; what matches nothing stays, to be reported."""
    for path in paths:
        if glob.has_magic(path) and not os.path.exists(path):
            yield from sorted(glob.glob(path, recursive=True)) or [path]
        else:
            yield path


def _find_yaml_files(directory: str) -> Iterator[str]:
    """Return the YAML files below a directory, in order, leaving hidden directories out."""
    for folder, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(_YAML_SUFFIXES):
                yield os.path.normpath(os.path.join(folder, name))
