"""Where streams keep their checkpoints: a directory for each, named by its id."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import Final

OWN: Final = ".service"
"""The directory of the service itself, beside those of the streams; no stream has such an id."""

# What a directory has that is a checkpoint, and not something that happens to have a stream's name.
_MARKS: Final = ("lock", "streamer.json")


class Checkpoints:
    """The directory of all checkpoints.

    Attributes:
        own: the service's own directory in it.
    """

    def __init__(self, directory: Path) -> None:
        """Make it, if it is not there; what an earlier start was throwing away goes."""
        self._directory = directory
        self.own = directory / OWN
        self._trash = self.own / "trash"
        shutil.rmtree(self._trash, ignore_errors=True)
        self._trash.mkdir(parents=True, mode=0o700)

    def of(self, stream_id: str) -> Path:
        """Return the checkpoint of a stream."""
        return self._directory / stream_id

    def clear(self, stream_id: str) -> None:
        """Remove the checkpoint of a stream, if there is one.

        It is there whole, or not at all, whenever the program ends.
        """
        path = self.of(stream_id)
        if any((path / mark).exists() for mark in _MARKS):
            trash = self._trash / uuid.uuid4().hex
            os.rename(path, trash)
            shutil.rmtree(trash, ignore_errors=True)
