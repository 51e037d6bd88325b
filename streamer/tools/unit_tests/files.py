"""The files that tests name, relative to their own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamer.core.permissions import NotPermittedError, current_permissions

MAX_FILE_BYTES: Final = 64 << 20
"""Of a file that a test names; a device would never end."""


def read_relative_file(directory: Path, name: str) -> tuple[bytes, str]:
    """Return a file's bytes, and why it cannot be read, or an empty text.

    Args:
        directory: where relative names begin.
        name: the file.
    """
    path = directory / name
    try:
        current_permissions().file(path)
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except NotPermittedError as e:
        return b"", str(e)
    except (OSError, ValueError) as e:
        return b"", f"{path}: {(getattr(e, 'strerror', None) or str(e)).lower()}"
    if len(content) > MAX_FILE_BYTES:
        return b"", f"{path}: has more than {MAX_FILE_BYTES:,} bytes"
    return content, ""
