"""The door to a table that is read: its versions, the files of each, and the rows of a file.

A version is a number: that of Delta Lake, the identifier of a snapshot of Iceberg, or the number of
a round in which files of a directory were noticed. What a version has is the same whenever it is
listed, so a place in the list is a position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution

NO_VERSION: Final = -1
"""Stands before the first version of a table."""

READ: Final = "read"
INSERT: Final = "insert"
DELETE: Final = "delete"


class TableReadError(StreamerError):
    """A table cannot be read on: it was changed, its history is gone; the text says what to do."""


class DataFile(NamedTuple):
    """A file of a table, or a part of its history.

    Attributes:
        path: as the reader of the table opens it.
        rows: how many rows it has, deleted ones too; -1 where only its footer says it.
        size: its bytes.
        operation: `read` of a row that the table has, `insert` or `delete` of one that a version
            adds or removes; empty where the rows say it.
        detail: what the reader must know besides; it can be pickled.
    """

    path: str
    rows: int
    size: int
    operation: str = READ
    detail: Any = None


class TableStep(NamedTuple):
    """One version, to be read.

    Attributes:
        version: its number.
        is_snapshot: whether all rows are read that the table has then, or those that it adds.
    """

    version: int
    is_snapshot: bool


class TablePiece(NamedTuple):
    """Rows of one file that follow each other.

    Attributes:
        file: the file.
        step: the version that it is read for.
        first: the number of the first row in the file.
        row_count: how many rows; None for all up to the end.
        context: what the reader needs for all files of the version, such as the columns.
    """

    file: DataFile
    step: TableStep
    first: int
    row_count: int | None
    context: Any = None


class TableRows(NamedTuple):
    """Rows of a table.

    Attributes:
        rows: the rows, with the columns of the table at that version.
        operations: the operation of each row; None where the file says it.
    """

    rows: pa.RecordBatch
    operations: Sequence[str] | None = None


class TableReader(Protocol):
    """Reads one table; it can be pickled, and each process opens the table by itself.

    All of it raises `TableUnavailableError` where the store or the catalog does not answer, and
    `TableReadError` where another try finds the same.
    """

    def describe(self) -> str:
        """Return where the table is, for messages."""

    @property
    def name(self) -> str:
        """The name of the table, for metadata."""

    def identity(self) -> str:
        """Return what tells the table from one that is made anew in its place."""

    def newest_version(self) -> int | None:
        """Return the newest version as it is now; None where there is no table yet."""

    def find_start(self, text: str) -> int:
        """Return the version behind which reading begins, by a number or a time of the config."""

    def versions_after(self, version: int) -> Iterator[int]:
        """Give the versions that follow one, in order, up to the newest that is known."""

    def count_groups(self, step: TableStep) -> int:
        """Return into how many lists the files of a version are divided."""

    def list_files(self, step: TableStep, group: int) -> Sequence[DataFile]:
        """Return one list of the files of a version, always in the same order."""

    def count_rows(self, file: DataFile) -> int:
        """Return how many rows a file has whose number is not known."""

    def context_of(self, step: TableStep) -> Any:
        """Return what workers need for all files of a version; it can be pickled."""

    def read(self, piece: TablePiece, ex: Execution) -> Iterator[TableRows]:
        """Read rows of a file, in their order."""

    def check(self) -> str:
        """Check that the table can be read, and has the columns that the config names.

        Returns:
            What is there, in words.

        Raises:
            StreamerError: it cannot, or has not.
        """
