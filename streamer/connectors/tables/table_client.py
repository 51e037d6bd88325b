"""The door to a table, whatever its format is: its columns, and commits of micro-batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa


class TableUnavailableError(OSError):
    """The table, its catalog or its store does not take a commit now; it is tried again."""


class TableConflictError(TableUnavailableError):
    """Another program has changed the table meanwhile; the commit is made anew, and at once."""


class RefusedRowsError(ValueError):
    """Rows that a rule of the table forbids; none of the commit is done.

    Attributes:
        reasons: why, by the index of the row.
    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        """Take the reasons; one at least."""
        super().__init__(next(iter(reasons.values())))
        self.reasons = reasons


class TableCommit(NamedTuple):
    """The rows of one micro-batch.

    Attributes:
        writer: names the output of the stream, for as long as its checkpoint goes on.
        batch: the number of the micro-batch, which grows.
        rows: the rows, with all columns of the table and those that are new.
    """

    writer: str
    batch: int
    rows: pa.Table


class TableClient(Protocol):
    """Reads and changes one table; driver and workers have one each.

    All of it raises TableUnavailableError where the store does not answer.
    """

    @property
    def upserts(self) -> bool:
        """Whether a row takes the place of the one with the same key."""

    def describe(self) -> str:
        """Return where the table is, for messages."""

    def load_columns(self) -> pa.Schema | None:
        """Return the columns as they are now; None where there is no table yet."""

    def find_committed(self, writer: str) -> int:
        """Return the newest micro-batch that a writer has committed; -1 for none.

        As the table was when it was looked at last, by this client.
        """

    def commit(self, commit: TableCommit) -> None:
        """Commit a micro-batch: all rows are seen at once, with the number of the micro-batch.

        A table that is not there is made, and columns that it does not have are added.

        Raises:
            TableConflictError: another program was faster; nothing is committed.
            RefusedRowsError: a rule of the table forbids some rows; nothing is committed.
        """

    def check(self) -> str:
        """Check that the table can be read, and has the columns that the config names.

        Returns:
            What is there, in words.

        Raises:
            StreamerError: it has not; another try finds the same.
        """

    def explain_name(self, name: str) -> str:
        """Return why a column cannot have a name; empty when it can."""
