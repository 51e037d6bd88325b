"""The door to a table, whatever its format is: its columns, and commits of micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyarrow import compute

from streamer.connectors.tables.commit_record import CommitRecord
from streamer.connectors.tables.row_operations import RowOperation
from streamer.connectors.tables.written_files import FileWriter, WrittenFile


class TableUnavailableError(OSError):
    """The table, its catalog or its store does not take a commit now; it is tried again."""


class TableConflictError(TableUnavailableError):
    """Another program has changed the table meanwhile; the commit is made anew, and at once."""


class ImpossibleTableError(TableUnavailableError):
    """The catalog cannot have such a table, so another try finds the same."""


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
        operations: what becomes of each row, see `RowOperation`; None to insert all of them. A key
            is in one row at most, apart from rows that are inserted.
        files: files that workers have written, for the layout that the table has now.
    """

    writer: str
    batch: int
    rows: pa.Table
    operations: pa.Array | None = None
    files: Sequence[WrittenFile] = ()

    @property
    def is_keyed(self) -> bool:
        """Whether some rows replace or delete others."""
        if self.operations is None or not len(self.operations):
            return False
        return bool(compute.max(self.operations).as_py() != RowOperation.INSERT)

    def select(self, *operations: RowOperation) -> pa.Table:
        """Return the rows that have one of some operations."""
        if self.operations is None:
            return self.rows if RowOperation.INSERT in operations else self.rows.slice(0, 0)
        numbers = pa.array(operations, pa.int8())
        return self.rows.filter(compute.is_in(self.operations, value_set=numbers))


def refuse_all(commit: TableCommit, reason: str) -> RefusedRowsError:
    """Return the error of a commit of which no row can be written."""
    return RefusedRowsError(dict.fromkeys(range(commit.rows.num_rows), reason))


def explain_partitions(names: str, problem: str) -> str:
    """Return why a new table cannot have its partitions, and what to do.

    Args:
        names: the columns that the config names for them.
        problem: what is wrong with one of them.
    """
    return (
        f"the table cannot be made with partitions by {names}: {problem}. Give the column and its "
        "type in the field columns, or have a mapping make it"
    )


class TableClient(Protocol):
    """Reads and changes one table; driver and workers have one each.

    All of it raises TableUnavailableError where the store does not answer.

    Attributes:
        widens_maps: whether objects that are values of a map may get fields.
    """

    widens_maps: bool

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

        A table that is not there is made, and columns that it does not have are added. Rows of the
        keys that are replaced or deleted are removed first.

        Raises:
            TableConflictError: another program was faster; nothing is committed.
            RefusedRowsError: a rule of the table forbids some rows, or a new table cannot have its
                partitions; nothing is committed.
        """

    def open_file_writer(self) -> FileWriter | None:
        """Return what writes data files for the table as it is now.

        Returns:
            None where there is no table, or rules of it that only its library knows to keep.
        """

    def read_file(self, file: WrittenFile) -> pa.Table:
        """Return the rows of a file that a worker has written."""

    def delete_files(self, files: Sequence[WrittenFile]) -> None:
        """Delete files that are in no version of the table, as far as that can be done."""

    def find_forbidden(self, commit: TableCommit) -> Mapping[int, str]:
        """Return why a rule of the table forbids rows of a commit, by their indexes."""

    def check(self) -> str:
        """Check that the table can be read, and has the columns that the config names.

        Returns:
            What is there, in words.

        Raises:
            StreamerError: it has not; another try finds the same.
        """

    def read_commits(self, limit: int) -> list[CommitRecord]:
        """Return the newest commits, the newest first; none where there is no table."""

    def explain_name(self, name: str) -> str:
        """Return why a column cannot have a name; empty when it can."""
