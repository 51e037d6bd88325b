"""Data files that workers write for a table, and that belong to it once the driver commits them.

Each attempt of a task gives its files names of their own, so the files of an attempt that failed
are in no version of the table. Whatever names the files of a frame is bytes, like its rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

_MARK: Final = b"\x00streamer files\n"
"""The first bytes of names of files: rows begin with the mark of Arrow streams, or are JSON."""

MIN_FILE_BYTES: Final = 4 << 20
"""Bytes of rows in memory for which a worker writes a file; the driver joins fewer of all tasks."""


class WrittenFile(NamedTuple):
    """A data file that is whole.

    Attributes:
        path: the file, as the table would name it.
        rows: how many rows it has.
        layout: tells whether the table still is as it was, see `FileWriter.layout`.
        entry: the format's description of the file, pickled; for the commit.
    """

    path: str
    rows: int
    layout: str
    entry: bytes


class FilePart(NamedTuple):
    """Rows that come into one file.

    Attributes:
        rows: the rows, with the columns of the table.
        partition: the partition, as the format has it.
    """

    rows: pa.Table
    partition: object


class FileWriter(Protocol):
    """Writes data files for a table as it is at one moment. Threads may share it.

    Attributes:
        columns: those of the table.
        layout: is another one when files that are made now would not fit the table any more.
        is_remote: whether each machine reaches the place of the files; if not, it is a directory.
    """

    columns: pa.Schema
    layout: str
    is_remote: bool

    def split(self, rows: pa.Table, limit: int) -> Sequence[FilePart] | None:
        """Return rows by their partitions; None where there are more than a limit."""

    def write(self, parts: Sequence[FilePart], name: str) -> list[WrittenFile]:
        """Write files.

        Args:
            parts: the rows of each.
            name: what names of files have; no other call has the same.

        Raises:
            TableUnavailableError: the store takes none now.
        """


def encode_files(files: Sequence[WrittenFile]) -> bytes:
    """Return the bytes that name files."""
    return _MARK + pickle.dumps([tuple(one) for one in files])


def names_files(body: bytes) -> bool:
    """Return whether bytes name files."""
    return body.startswith(_MARK)


def decode_files(body: bytes) -> list[WrittenFile]:
    """Return the files that bytes name.

    Example:
        >>> body = encode_files([WrittenFile("a.parquet", 3, "1", b"")])
        >>> names_files(body), decode_files(body)[0].path
        (True, 'a.parquet')
    """
    return [WrittenFile(*one) for one in pickle.loads(body[len(_MARK) :])]
