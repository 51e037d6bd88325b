"""Disks that are full: a small file system for a test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(directory: Path, size: int) -> Iterator[None]:
    """Mount a file system of so many bytes at a directory until the block ends.

    Where that is not allowed, the test is skipped: it takes a right that cannot be installed, and
    that some containers of continuous integration do not have.
    """
    directory.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(directory)]
    made = subprocess.run(mount, capture_output=True, text=True)
    if made.returncode:
        said = f"no small file system can be mounted: {made.stderr.strip()}"
        pytest.skip(f"{said}; it takes root with CAP_SYS_ADMIN")
    try:
        yield
    finally:
        # Lazily: a worker that ends late may still have a file of it open.
        subprocess.run(["umount", "-l", str(directory)], check=True)
