"""Check whether a file could be written, without writing it."""

from __future__ import annotations

import os
from pathlib import Path

from streamer.core.errors import StreamerError


def check_writable_file(path: Path) -> str:
    """Check that a file can be written, or made, with its folders.

    Returns:
        `is there`, or `will be made`.

    Raises:
        StreamerError: it cannot be written; the text says why.
    """
    if path.is_dir():
        raise StreamerError(f"{path} is a directory; expected a file")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise StreamerError(f"{path} cannot be written: permission denied")
        return "is there"
    above = path.absolute().parent
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise StreamerError(f"{path} cannot be made: {above} is not a directory")
    if not os.access(above, os.W_OK | os.X_OK):
        raise StreamerError(f"{path} cannot be made: {above} is not writable")
    return "will be made"
