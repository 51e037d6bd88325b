"""Results of windows that wait on the disk until both revisions have a micro-batch."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from streamer.engine.report.result_frame import Frame, FrameKind

_HEADER: Final = struct.Struct("<iq")
"""A shard, and the bytes of its rows."""

Portion = tuple[int, bytes]
"""A shard, and rows of its results (`streamer.engine.results.rows`)."""


class CapturedWindows:
    """The results of one revision, a file for each micro-batch.

    One thread adds files, another one takes them away.
    """

    def __init__(self, directory: Path) -> None:
        """Make the directory, which is not there yet.

        Raises:
            OSError: it cannot be made.
        """
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True)

    def add(self, batch: int, frames: Iterable[Frame]) -> int:
        """Keep the results of a micro-batch, in the place of those that it had before.

        Args:
            batch: its number.
            frames: all that its tasks made.

        Returns:
            How many bytes they take.

        Raises:
            OSError: they cannot be written.
        """
        portions = [frame for frame in frames if frame.kind == FrameKind.RESULT]
        path = self._path(batch)
        draft = path.with_suffix(".tmp")
        with draft.open("wb") as out:
            for frame in portions:
                out.write(_HEADER.pack(frame.shard, len(frame.body)))
                out.write(frame.body)
            size = out.tell()
        os.replace(draft, path)
        return size

    def read(self, batch: int) -> Sequence[Portion]:
        """Return the results of a micro-batch.

        Raises:
            OSError: they cannot be read, or are not there.
        """
        return list(_read_portions(self._path(batch).read_bytes()))

    def delete(self, batch: int) -> int:
        """Delete the results of a micro-batch; return how many bytes they took."""
        path = self._path(batch)
        size = path.stat().st_size
        path.unlink()
        return size

    def _path(self, batch: int) -> Path:
        return self._directory / f"{batch:020d}.rows"


def _read_portions(content: bytes) -> Iterator[Portion]:
    at = 0
    while at < len(content):
        shard, size = _HEADER.unpack_from(content, at)
        at += _HEADER.size
        yield shard, content[at : at + size]
        at += size
