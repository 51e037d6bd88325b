"""Writes the rows of one table output: a commit for each micro-batch, and each once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from streamer.connectors.tables.row_collector import collect_rows, dump_row
from streamer.connectors.tables.table_client import (
    RefusedRowsError,
    TableClient,
    TableCommit,
    TableConflictError,
    TableUnavailableError,
)
from streamer.connectors.tables.table_output import TableOutput
from streamer.core.errors import StreamerError
from streamer.engine.driver.file_routes import RefusedRoutesError
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
        self._is_first = True
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
        bodies = [frame.body for frame in frames]
        rows, misfits = collect_rows(bodies, self._output.columns_of(known))
        refused = [(frames[one.source]._replace(body=one.body), one.reason) for one in misfits]
        if rows is not None and not self._is_committed(batch, is_first):
            forbidden = self._commit(batch, rows)
            refused += [(frames[0]._replace(body=body), why) for body, why in forbidden]
        return refused

    def _commit(self, batch: int, rows: pa.Table) -> list[tuple[bytes, str]]:
        """Commit rows; return those that a rule of the table forbids, with the reason."""
        refused: list[tuple[bytes, str]] = []
        while rows.num_rows:
            # A row that is forbidden replaces no other.
            indexes = self._output.find_newest(rows) if self._client.upserts else None
            taken = rows if indexes is None else rows.take(indexes)
            try:
                self._client.commit(TableCommit(self._writer(), batch, taken))
                break
            except RefusedRowsError as error:
                bad = {
                    at if indexes is None else indexes[at].as_py(): why
                    for at, why in error.reasons.items()
                }
            some = rows.take(pa.array(sorted(bad), pa.int64())).to_pylist()
            refused += zip(map(dump_row, some), (bad[at] for at in sorted(bad)), strict=True)
            kept = [at for at in range(rows.num_rows) if at not in bad]
            rows = rows.take(pa.array(kept, pa.int64()))
        return refused

    def _is_committed(self, batch: int, is_first: bool) -> bool:
        """Return whether a micro-batch is in the table already."""
        committed = self._client.find_committed(self._writer())
        if committed < batch or self._client.upserts:
            return False
        if committed > batch and is_first:
            raise StreamerError(
                f"{self._client.describe()} has the micro-batches of this stream up to "
                f"{committed}, and the checkpoint goes on with {batch}: it is an older copy, and "
                "its rows would come twice. Restore the table to the version before micro-batch "
                f"{batch}, or restore the newest checkpoint"
            )
        return True
