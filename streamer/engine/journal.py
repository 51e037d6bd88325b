"""Exactly once into local files: the lengths before a micro-batch are on disk before it is written.

A micro-batch that is replayed after a crash cuts its files back to those lengths and writes again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from streamer.disk import sync_data
from streamer.engine.sums import is_summed, summed
from streamer.errors import StreamerError


class FileJournal:
    """The lengths of files before the micro-batch in hand.

    One micro-batch is in hand at a time, and a replay writes to the same files.
    """

    def __init__(self, path: Path) -> None:
        """Read the journal of an earlier start, if there is one.

        Raises:
            StreamerError: it is damaged.
        """
        self._path = path
        self._batch = -1
        self._lengths: dict[str, int] = {}
        if path.exists():
            self._batch, self._lengths = _read(path)

    @property
    def batch(self) -> int:
        """The micro-batch in hand; -1 before the first."""
        return self._batch

    def begin(self, batch: int, files: Iterable[str]) -> None:
        """Make ready to append a micro-batch to files; a replay takes back what it wrote.

        Raises:
            OSError: the journal cannot be written, or a file cannot be cut.
        """
        if batch == self._batch:
            self.take_back()
            missing = [file for file in files if file not in self._lengths]
            if not missing:
                return
            lengths = {**self._lengths, **{file: _length(file) for file in missing}}
        else:
            lengths = {file: _length(file) for file in files}
        draft = self._path.with_suffix(".tmp")
        with draft.open("wb") as out:
            out.write(json.dumps(summed({"batch": batch, "lengths": lengths})).encode())
            out.flush()
            sync_data(out.fileno())
        draft.replace(self._path)
        self._batch, self._lengths = batch, lengths

    def take_back(self) -> None:
        """Cut the files of the micro-batch in hand to what they were before it."""
        for file, length in self._lengths.items():
            # A file that was moved away or cut by someone else is not made longer.
            if _length(file) > length:
                os.truncate(file, length)


def _read(path: Path) -> tuple[int, dict[str, int]]:
    try:
        found = json.loads(path.read_bytes())
        if not is_summed(found):
            raise ValueError("its check sum is another one")
        return int(found["batch"]), dict(found["lengths"])
    except (ValueError, KeyError, TypeError) as e:
        raise StreamerError(
            f"{path} says how long output files were before the last micro-batch, and is damaged "
            f"({e}): that micro-batch could come twice, or what was written before be cut off. "
            "Restore it from a backup; or see that the last lines of the files are whole and come "
            "once, and delete it"
        ) from None


def _length(file: str) -> int:
    try:
        return os.stat(file).st_size
    except FileNotFoundError:
        return 0
