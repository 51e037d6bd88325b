"""A journal of files in the order in which they were noticed, beside the checkpoint.

A line has the files of one round. It is durable before an offset names it, so that the same files
are read again after a crash, in the same order, whatever has come to the directory meanwhile.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from streamer.core.disk import sync_data, sync_directory

_JOURNAL_NAME: Final = "files.jsonl"


class NoticedFile(NamedTuple):
    """A file as it was when it was noticed.

    Attributes:
        path: its absolute path, or its URL.
        display_path: the path as it was written or matched.
        size: its bytes.
        modified_at: when it was written, Unix ns.
        version: of an object; empty for a file.
    """

    path: str
    display_path: str
    size: int
    modified_at: int
    version: str = ""


class FileJournal:
    """The rounds of one input; one process at a time writes them.

    Of a file that is in the journal, its hash is in memory, and nothing else.
    """

    def __init__(self, directory: Path) -> None:
        """Read what is in the journal; a line that was cut off by a crash is removed.

        Args:
            directory: of the input, in the checkpoint.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / _JOURNAL_NAME
        self._places = array("q")
        self._hashes: set[int] = set()
        self._end = 0
        if self._path.exists():
            self._read()

    def _read(self) -> None:
        with self._path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self._hashes.update(hash(one[0]) for one in json.loads(line))
                self._places.append(self._end)
                self._end += len(line)

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self._places)

    def select_new(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that are not in the journal, in their order."""
        return [path for path in paths if hash(path) not in self._hashes]

    def append(self, files: Sequence[NoticedFile]) -> None:
        """Add a round; it is durable when this returns.

        Raises:
            OSError: it cannot be written.
        """
        line = json.dumps(files, separators=(",", ":")).encode() + b"\n"
        with self._path.open("r+b" if self._path.exists() else "xb") as journal:
            journal.seek(self._end)
            journal.truncate()
            journal.write(line)
            journal.flush()
            sync_data(journal.fileno())
        if not self._places:
            _sync_directory(self._path.parent)
        self._places.append(self._end)
        self._end += len(line)
        self._hashes.update(hash(one.path) for one in files)

    def read_round(self, number: int) -> list[NoticedFile]:
        """Return the files of a round, by its number from 0."""
        with self._path.open("rb") as journal:
            journal.seek(self._places[number])
            return [NoticedFile(*one) for one in json.loads(journal.readline())]


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_directory(handle)
    finally:
        os.close(handle)
