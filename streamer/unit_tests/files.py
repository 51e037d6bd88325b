"""The files that tests name, relative to their own."""

from __future__ import annotations

from pathlib import Path


def read_beside(directory: Path, name: str) -> tuple[bytes, str]:
    """Return a file's bytes, and why it cannot be read, or an empty text.

    Args:
        directory: where relative names begin.
        name: the file.
    """
    path = directory / name
    try:
        return path.read_bytes(), ""
    except (OSError, ValueError) as e:
        return b"", f"{path}: {(getattr(e, 'strerror', None) or str(e)).lower()}"
