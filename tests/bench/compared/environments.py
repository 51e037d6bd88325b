"""Where a peer is installed: beside the product where that goes, else by itself in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement

_INSTALLING = 900
"""Seconds that pip is given."""


def cache() -> Path:
    """Return the directory of the peers' own environments."""
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "streamer" / "peers"


def is_here(wanted: Sequence[str]) -> bool:
    """Tell whether all requirements are met by this Python."""
    try:
        found = [(Requirement(one), version(Requirement(one).name)) for one in wanted]
    except PackageNotFoundError:
        return False
    return all(requirement.specifier.contains(there) for requirement, there in found)


def python_of(name: str, wanted: Sequence[str]) -> Path:
    """Return the Python of a peer; install it first where that was not done.

    Args:
        name: of the peer.
        wanted: what it requires, as pip reads it.

    Raises:
        RuntimeError: pip could not install it; the text has the end of what it says.
    """
    if is_here(wanted):
        return Path(sys.executable)
    place = cache() / name
    python, done = place / "bin" / "python", place / "installed.txt"
    if done.exists() and done.read_text().splitlines() == list(wanted):
        return python
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    said = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", *wanted],
        capture_output=True,
        text=True,
        timeout=_INSTALLING,
    )
    if said.returncode:
        shutil.rmtree(place, ignore_errors=True)
        raise RuntimeError(f"pip does not install it: {said.stderr.strip()[-300:]}")
    done.write_text("\n".join(wanted))
    return python


def version_of(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    said = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return said.stdout.strip()
