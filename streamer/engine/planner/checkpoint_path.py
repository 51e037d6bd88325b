"""Paths of a checkpoint: on this machine, or on a file system that Spark reaches."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from streamer.core.disk import sync_data


class Location(Protocol):
    """A file or a directory of a checkpoint; `pathlib.Path` is one.

    Its text is what Spark is told, and what is shown to people.
    """

    @property
    def name(self) -> str:
        """The last part of its path."""

    def __truediv__(self, name: str, /) -> Self:
        """Return what has this name in it."""

    def glob(self, pattern: str, /) -> Iterator[Self]:
        """Give what is in it, by a pattern of names; nothing where it is not there."""

    def iterdir(self) -> Iterator[Self]:
        """Give what is in it.

        Raises:
            FileNotFoundError: it is not there.
        """

    def exists(self) -> bool:
        """Return whether it is there."""

    def read_bytes(self) -> bytes:
        """Return what is in the file.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it cannot be read.
        """

    def read_text(self, encoding: str | None = None) -> str:
        """Return what is in the file, as text; see `read_bytes`."""


class RemoteLocation(Location, Protocol):
    """One on a file system that is not this machine's."""

    def put(self, body: bytes) -> None:
        """Replace the file at once: whoever reads it gets what was there, or this.

        Raises:
            OSError: it cannot be written.
        """

    def receive(self, directory: Path) -> None:
        """Copy a directory of this machine here, where nothing is.

        Raises:
            OSError: it cannot be written.
        """

    def fetch(self, directory: Path) -> None:
        """Copy the directory to one of this machine that is not there.

        Raises:
            OSError: it cannot be read, or not be written.
        """

    def delete(self) -> None:
        """Delete the file or directory with all that is in it, if there is one.

        Raises:
            OSError: that is refused.
        """


CheckpointPath = Path | RemoteLocation


def replace_file(file: CheckpointPath, body: bytes, mode: int = 0o666) -> None:
    """Replace a file at once: after a crash there is the one before, or this one.

    Args:
        file: the file.
        body: what is in it then.
        mode: its mode on this machine, less the umask.

    Raises:
        OSError: it cannot be written.
    """
    if not isinstance(file, Path):
        return file.put(body)
    draft = file.with_suffix(".tmp")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as out:
        out.write(body)
        out.flush()
        sync_data(out.fileno())
    draft.replace(file)


def remove_file(file: CheckpointPath) -> None:
    """Delete a file, if it is there.

    Raises:
        OSError: that is refused.
    """
    if isinstance(file, Path):
        file.unlink(missing_ok=True)
    else:
        file.delete()


def remove_tree(place: CheckpointPath) -> None:
    """Delete a directory, as far as that is allowed; what is left is swept at the next start."""
    if isinstance(place, Path):
        return shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):
        place.delete()


def list_batch_numbers(log: Location) -> Iterator[int]:
    """Give the numbers of the files in one of Spark's logs, of which those are whole."""
    # Spark names a file by its micro-batch once it is whole, and otherwise before that.
    return (int(path.name) for path in log.glob("*") if path.name.isdecimal())
