"""Exactly once into local files: the lengths before a micro-batch are on disk before it is written.

A micro-batch that is replayed after a crash cuts its files back to those lengths and writes again.
Beside a journal stands what its newest write was (`files.newest` beside `files.json`), so that one
that is gone, or an older copy, is not taken for a beginning: its micro-batch would come twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

from streamer.core.disk import sync_data
from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum, has_valid_checksum

_ABSENT: Final = -1
"""In the place of its length: a file that is made, and was not there before."""


class FileJournal:
    """The lengths of files before the micro-batch in hand.

    One micro-batch is in hand at a time, and a replay writes to the same files.
    """

    def __init__(self, path: Path, remove: Callable[[str], None] | None = None) -> None:
        """Read the journal of an earlier start, if there is one.

        Args:
            path: of the journal.
            remove: removes a file that was made; one that is not there is removed.

        Raises:
            StreamerError: it is damaged, gone, or an older copy.
        """
        self._path = path
        self._remove = remove or _remove
        self._newest = newest_path(path)
        self._batch = -1
        self._writes = 0
        self._lengths: dict[str, int] = {}
        if path.exists():
            self._batch, self._writes, self._lengths = _read_journal(path)
        self._check_newest()

    @property
    def batch(self) -> int:
        """The micro-batch in hand; -1 before the first."""
        return self._batch

    def begin(self, batch: int, files: Iterable[str], made: Iterable[str] = ()) -> None:
        """Make ready to append a micro-batch to files; a replay takes back what it wrote.

        Args:
            batch: the micro-batch's number.
            files: what it appends to.
            made: empty files that it makes, which a replay removes first.

        Raises:
            OSError: the journal cannot be written, or a file cannot be cut.
        """
        if batch == self._batch:
            self.roll_back()
            missing = [file for file in (*files, *made) if file not in self._lengths]
            if not missing:
                return
            lengths = {**self._lengths, **_measure_files(missing, made)}
        else:
            lengths = _measure_files((*files, *made), made)
        newest = {"batch": batch, "writes": self._writes + 1}
        draft = self._path.with_suffix(".tmp")
        with draft.open("wb") as out:
            out.write(json.dumps(add_checksum({**newest, "lengths": lengths})).encode())
            out.flush()
            sync_data(out.fileno())
        draft.replace(self._path)
        # Not forced to the disk: one that is older or cannot be read after a crash says less, and
        # nothing wrong.
        draft.write_bytes(json.dumps(add_checksum(newest)).encode())
        draft.replace(self._newest)
        self._batch, self._writes, self._lengths = batch, self._writes + 1, lengths

    def files_of(self, batch: int) -> Collection[str]:
        """Return the files of a micro-batch, where it is the one in hand; else none."""
        return self._lengths.keys() if batch == self._batch else ()

    def roll_back(self) -> None:
        """Cut the files of the micro-batch in hand to what they were before it."""
        for file, length in self._lengths.items():
            if length == _ABSENT:
                self._remove(file)
            # A file that was moved away or cut by someone else is not made longer.
            elif _file_length(file) > length:
                os.truncate(file, length)

    def _check_newest(self) -> None:
        """Check that the journal is not older than what was noted of it.

        Raises:
            StreamerError: it is, or is gone.
        """
        try:
            document = json.loads(self._newest.read_bytes())
            batch, writes = int(document["batch"]), int(document["writes"])
            if not has_valid_checksum(document):
                raise ValueError
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError):
            batch, writes = -1, 0
        if self._batch < 0:
            wrong, delete = "is gone", f"{self._newest}"
        elif self._writes < writes and self._batch <= batch:
            wrong = f"is an older copy, of micro-batch {self._batch} and not {batch}"
            delete = f"it and {self._newest}"
        else:
            return
        raise StreamerError(
            f"{self._path} {wrong}: it says how long output files were before the last micro-batch "
            "that was written to them, which could come twice without it. Restore it from a "
            "backup of that moment; or see that the last lines of the files are whole and come "
            f"once, and delete {delete}"
        )


def _remove(file: str) -> None:
    Path(file).unlink(missing_ok=True)


def newest_path(path: Path) -> Path:
    """Return the file that says what the newest write of a journal was."""
    return path.with_suffix(".newest")


def _read_journal(path: Path) -> tuple[int, int, dict[str, int]]:
    try:
        document = json.loads(path.read_bytes())
        if not has_valid_checksum(document):
            raise ValueError("its check sum is another one")
        # Version 0.1 has not counted its writes.
        return int(document["batch"]), int(document.get("writes", 0)), dict(document["lengths"])
    except (ValueError, KeyError, TypeError) as e:
        raise StreamerError(
            f"{path} says how long output files were before the last micro-batch, and is damaged "
            f"({e}): that micro-batch could come twice, or what was written before be cut off. "
            "Restore it from a backup; or see that the last lines of the files are whole and come "
            f"once, and delete it and {newest_path(path)}"
        ) from None


def _measure_files(files: Iterable[str], made: Iterable[str]) -> dict[str, int]:
    """Return the lengths of files; of those that are made and are not there yet `_ABSENT`."""
    new = {file for file in made if not os.path.exists(file)}
    return {file: _ABSENT if file in new else _file_length(file) for file in files}


def _file_length(file: str) -> int:
    try:
        return os.stat(file).st_size
    except FileNotFoundError:
        return 0
