"""Writes the rows of one table output: a commit for each micro-batch, and each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from streamer.connectors.tables.row_collector import collect_rows
from streamer.connectors.tables.table_client import (
    TableClient,
    TableCommit,
    TableUnavailableError,
)
from streamer.connectors.tables.table_output import TableOutput
from streamer.core.errors import StreamerError
from streamer.engine.driver.commit_counts import RETRIES, count_records
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.report.result_frame import Frame

_MAX_READ_COMMITS: Final = 4


class TableWriter:
    """Commits the rows of micro-batches to one table; see `Writer`."""

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
        self._tries = 0
        self._counted_batch = -1

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
        known = self._client.load_columns()
        if known is None and not self._output.is_open:
            raise TableUnavailableError(
                f"{self._client.describe()} is not there, and schema_evolution.enabled is false"
            )
        bodies = [frame.body for frame in frames]
        rows, refused = collect_rows(bodies, self._output.columns_of(known))
        if rows is not None and not self._is_committed(batch, is_first):
            if self._client.upserts:
                rows = self._output.keep_newest(rows)
            self._client.commit(TableCommit(self._writer(), batch, rows))
        if refused:
            raise RefusedRoutesError(
                [(frames[one.source]._replace(body=one.body), one.reason) for one in refused]
            )

    def take_counts(self, batch: int) -> Mapping[str, int]:
        """Return what the commits of a micro-batch add to metrics; see `CountingWriter`."""
        tries, self._tries = self._tries, 0
        counts = Counter({RETRIES: max(tries - 1, 0)})
        if batch == self._counted_batch:
            return counts
        self._counted_batch = batch
        # An upsert may be two snapshots; other programs may have committed since.
        with suppress(OSError, StreamerError, ValueError):
            records = self._client.read_commits(_MAX_READ_COMMITS)
            mine = (self._writer(), batch)
            counts += count_records(one for one in records if (one.writer, one.batch) == mine)
        return counts

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
