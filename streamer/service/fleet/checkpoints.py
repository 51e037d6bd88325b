"""Directories of the streams' checkpoints, named by their ids."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.core.log_format import LogLine

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import RemoteCheckpoint

SERVICE_DIRECTORY: Final = ".service"
"""The directory of the service itself, beside those of the streams; no stream has such an id."""

# What a directory has that is a checkpoint, and not something that happens to have a stream's name.
_MARKER_FILES: Final = ("lock", "streamer.json")


class Checkpoints:
    """The directory of all checkpoints.

    Attributes:
        service_directory: the service's own directory in it.
    """

    def __init__(self, directory: Path) -> None:
        """Make the directory, if it is not there; finish deletions of an earlier start."""
        self._directory = directory
        self.service_directory = directory / SERVICE_DIRECTORY
        self._trash = self.service_directory / "trash"
        shutil.rmtree(self._trash, ignore_errors=True)
        self._trash.mkdir(parents=True, mode=0o700)

    def directory_of(self, stream_id: str) -> Path:
        """Return the directory of a stream on this machine."""
        return self._directory / stream_id

    def display_path(self, stream_id: str) -> str:
        """Return where the checkpoint of a stream is, for people."""
        return str(self.directory_of(stream_id))

    def acquire(self, stream_id: str, log: LogLine) -> str | RemoteCheckpoint:
        """Return the checkpoint of a stream as a run takes it.

        Args:
            stream_id: the stream.
            log: takes the stream's lines.

        Raises:
            CheckpointError: it cannot be had; the text says why.
        """
        return str(self.directory_of(stream_id))

    def mark_started(self, stream_id: str) -> None:
        """Note that a stream has started on its checkpoint, which is its own from now on."""

    def delete_pending(self, log: LogLine) -> None:
        """Delete what an earlier start did not come to delete; called before streams start.

        Args:
            log: takes lines of the service's log.
        """

    def delete(self, stream_id: str) -> None:
        """Remove the checkpoint of a stream, if there is one.

        It is there whole, or not at all, whenever the program ends.

        Raises:
            CheckpointError: it cannot be removed now; the text says why.
        """
        path = self.directory_of(stream_id)
        if any((path / mark).exists() for mark in _MARKER_FILES):
            trash = self._trash / uuid.uuid4().hex
            os.rename(path, trash)
            shutil.rmtree(trash, ignore_errors=True)
