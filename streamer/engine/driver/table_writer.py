"""Writes the rows of one table output: a commit for each micro-batch, and each once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from streamer.connectors.tables.commit_record import CommitRecord
from streamer.connectors.tables.row_collector import collect_rows, dump_rows
from streamer.connectors.tables.row_operations import (
    RowOperation,
    find_newest,
    read_operation,
)
from streamer.connectors.tables.table_client import (
    RefusedRowsError,
    TableClient,
    TableCommit,
    TableConflictError,
    TableUnavailableError,
)
from streamer.connectors.tables.table_output import TableOutput
from streamer.core.errors import StreamerError
from streamer.engine.driver.commit_counts import CONFLICTS, RETRIES, count_records
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.table_commits import SHOWN_COMMITS, TableCommits
from streamer.engine.driver.task_files import TaskFiles
from streamer.engine.report.result_frame import Frame

_MAX_CONFLICTS: Final = 20
"""Times that others may be faster before the store counts as one that does not answer."""

_MAX_CONFLICT_PAUSE_S: Final = 1.0


class TableWriter:
    """Commits the rows of micro-batches to one table; see `Writer`.

    Attributes:
        conflicts: commits that were made anew, since another program had changed the table.
    """

    def __init__(self, output: TableOutput, writer: Callable[[], str]) -> None:
        """Take the output.

        Args:
            output: knows the table.
            writer: returns the name of the output of the stream, which is the same for as long as
                its checkpoint goes on.
        """
        self._client: TableClient = output.client
        self._output = output
        self._writer = writer
        self._files = TaskFiles(output.client)
        self._is_first = True
        self._tries = 0
        self._counted_batch = -1
        self._counted_conflicts = 0
        self._records: Sequence[CommitRecord] = ()
        self._retries = 0
        self.conflicts = 0

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Commit a micro-batch, unless it is committed.

        Raises:
            TableUnavailableError: the table takes nothing now.
            RefusedRoutesError: some rows do not fit; all others are committed.
            StreamerError: the checkpoint is older than the table.
        """
        is_first, self._is_first = self._is_first, False
        if not frames:
            return
        self._tries += 1
        conflicts = 0
        while True:
            try:
                refused = self._write(batch, frames, is_first)
                break
            except TableConflictError:
                self.conflicts += 1
                conflicts += 1
                if conflicts >= _MAX_CONFLICTS:
                    raise
                # Not all of those that wait try again at the same moment.
                time.sleep(random.uniform(0, min(0.05 * 2**conflicts, _MAX_CONFLICT_PAUSE_S)))
        if refused:
            raise RefusedRoutesError(refused)

    def _write(
        self, batch: int, frames: Sequence[Frame], is_first: bool
    ) -> list[tuple[Frame, str]]:
        """Commit a micro-batch to the table as it is now; return what does not fit, and why."""
        known = self._client.load_columns()
        if known is None and not self._output.is_open:
            raise TableUnavailableError(
                f"{self._client.describe()} is not there, and schema_evolution.enabled is false"
            )
        default = self._output.operation
        bodies, files = self._files.take([frame.body for frame in frames])
        rows, operations, misfits = collect_rows(
            bodies,
            self._output.columns_of(known),
            [read_operation(frame.route) if frame.route else default for frame in frames],
        )
        refused = [
            (self._refuse(frames[one.source], one.body, one.operation), one.reason)
            for one in misfits
        ]
        if rows.num_rows or files:
            whole = TableCommit(self._writer(), batch, rows, operations, files)
            if self._is_committed(batch, is_first):
                # The answer was lost; what was forbidden then is forbidden now.
                forbidden = self._take_forbidden(whole, self._client.find_forbidden(whole))
                self._files.drop(files)
            else:
                self._files.note_attempt(files)
                forbidden = self._commit(whole)
            self._files.delete_dropped()
            refused += [
                (self._refuse(frames[0], body, operation), why)
                for body, operation, why in forbidden
            ]
        return refused

    def _refuse(self, frame: Frame, body: bytes, operation: RowOperation) -> Frame:
        """Return a frame with one row that is refused, which knows what is to become of it."""
        is_usual = operation == self._output.operation
        return frame._replace(body=body, route="" if is_usual else operation.word)

    def _commit(self, whole: TableCommit) -> list[tuple[bytes, RowOperation, str]]:
        """Commit rows; return those that a rule of the table forbids, with the reason."""
        refused: list[tuple[bytes, RowOperation, str]] = []
        while whole.rows.num_rows or whole.files:
            rows, operations = whole.rows, whole.operations
            assert operations is not None
            # A row that is forbidden replaces no other.
            indexes = find_newest(rows, operations, self._output.keys)
            taken = whole
            if indexes is not None:
                taken = whole._replace(rows=rows.take(indexes), operations=operations.take(indexes))
            try:
                self._client.commit(taken)
                break
            except RefusedRowsError as error:
                bad = {
                    at if indexes is None else indexes[at].as_py(): why
                    for at, why in error.reasons.items()
                }
            refused += self._take_forbidden(whole, bad)
            kept = pa.array([at for at in range(rows.num_rows) if at not in bad], pa.int64())
            whole = whole._replace(rows=rows.take(kept), operations=operations.take(kept))
        return refused

    def _take_forbidden(
        self, commit: TableCommit, reasons: Mapping[int, str]
    ) -> list[tuple[bytes, RowOperation, str]]:
        """Return rows that a rule forbids, each with the reason."""
        if not reasons:
            return []
        bad = sorted(reasons)
        indexes = pa.array(bad, pa.int64())
        bodies = dump_rows(commit.rows.take(indexes))
        words = [self._output.operation] * len(bad)
        if commit.operations is not None:
            words = [RowOperation(one) for one in commit.operations.take(indexes).to_pylist()]
        return list(zip(bodies, words, (reasons[at] for at in bad), strict=True))

    def take_counts(self, batch: int) -> Mapping[str, int]:
        """Return what the commits of a micro-batch add to metrics; see `CountingWriter`."""
        tries, self._tries = self._tries, 0
        conflicts, self._counted_conflicts = (
            self.conflicts - self._counted_conflicts,
            self.conflicts,
        )
        counts = Counter({RETRIES: max(tries - 1, 0) + conflicts, CONFLICTS: conflicts})
        if batch == self._counted_batch:
            return counts
        self._counted_batch = batch
        # An upsert may be two snapshots; other programs may have committed since.
        with suppress(OSError, StreamerError, ValueError):
            self._records = self._client.read_commits(SHOWN_COMMITS)
            mine = (self._writer(), batch)
            own = [one for one in self._records if (one.writer, one.batch) == mine]
            counts += count_records(own)
        self._retries += counts[RETRIES]
        return counts

    def commits(self) -> TableCommits | None:
        """Return the newest commits of the table; None before the first."""
        if not self._records:
            return None
        return TableCommits(
            self._client.describe(), tuple(self._records), self._retries, self.conflicts
        )

    def find_ahead(self, batch: int) -> str:
        """Return the table, where it has a micro-batch already; see `AheadWriter`."""
        try:
            if self._output.is_repeatable or self._client.find_committed(self._writer()) < batch:
                return ""
        except TableUnavailableError:
            return ""
        return self._client.describe()

    def _is_committed(self, batch: int, is_first: bool) -> bool:
        """Return whether a micro-batch is in the table already."""
        committed = self._client.find_committed(self._writer())
        if committed < batch or self._output.is_repeatable:
            return False
        if committed > batch and is_first:
            raise StreamerError(
                f"{self._client.describe()} has the micro-batches of this stream up to "
                f"{committed}, and the checkpoint goes on with {batch}: it is an older copy, and "
                "its rows would come twice. Restore the table to the version before micro-batch "
                f"{batch}, or restore the newest checkpoint"
            )
        return True
