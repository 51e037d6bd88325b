"""The rows of one task: many become data files of the table, and few go to the driver.

The driver joins the few of all tasks into one file. Files that workers write take the work of their
encoding off the driver, and their rows do not pass it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Final
from uuid import uuid4

import pyarrow as pa

from streamer.connectors.tables.arrow_streams import encode_table
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.written_files import (
    MIN_FILE_BYTES,
    FileWriter,
    WrittenFile,
    encode_files,
)
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch

MAX_PENDING_BYTES: Final = 64 << 20
"""Bytes of rows in memory that a task collects before it writes them."""

_NAME_LENGTH: Final = 12

BuildRows = Callable[[Batch, Execution], pa.RecordBatch]
"""Returns the rows of messages, or raises SendError where some are none."""


class TaskRows:
    """Collects the rows of one table; see `sdk.output.protocols.TaskCollector`.

    Attributes:
        append: bytes stand for themselves; nothing joins them.
        ignores_batches: rows are the same however messages are cut into batches.
        size: bytes of the rows in hand.
    """

    append = False
    ignores_batches = True

    def __init__(
        self,
        build_rows: BuildRows,
        open_writer: Callable[[], FileWriter | None],
        task: MicroBatch,
        *,
        shares_disk: bool,
    ) -> None:
        """Begin without rows.

        Args:
            build_rows: makes rows of messages.
            open_writer: returns what writes files of the table; None where workers cannot.
            task: the part of the micro-batch, which names files.
            shares_disk: whether the workers and the driver have the same directories.
        """
        self._build_rows = build_rows
        self._open_writer = open_writer
        self._task = task
        self._shares_disk = shares_disk
        self._batches: list[pa.RecordBatch] = []
        self.size = 0

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Take messages; return what has become of those in hand, when they are many.

        Raises:
            SendError: some messages are no rows of the table; none is taken.
        """
        if not batch:
            return []
        self.hold(self.build(batch, ex))
        return self.finish() if self.size >= MAX_PENDING_BYTES else []

    def build(self, batch: Batch, ex: Execution) -> pa.RecordBatch:
        """Return the rows of messages, and take none yet.

        Raises:
            SendError: some messages are no rows of the table.
        """
        return self._build_rows(batch, ex)

    def hold(self, rows: pa.RecordBatch) -> None:
        """Take rows that were built."""
        self._batches.append(rows)
        self.size += rows.nbytes

    def finish(self) -> list[tuple[str, bytes]]:
        """Return what has become of the rows in hand: the names of files, or the rows."""
        batches, self._batches, self.size = self._batches, [], 0
        bodies = []
        for schema, some in groupby(batches, key=lambda one: one.schema):
            rows = pa.Table.from_batches(list(some), schema).combine_chunks()
            files = self._write(rows)
            bodies.append(("", encode_files(files) if files else encode_table(rows)))
        return bodies

    def _write(self, rows: pa.Table) -> list[WrittenFile]:
        """Write files of the rows; return none where the driver is to do it."""
        limit = rows.nbytes // MIN_FILE_BYTES
        if not limit:
            return []
        try:
            writer = self._open_writer()
            if writer is None or not (writer.is_remote or self._shares_disk):
                return []
            if rows.schema.names != writer.columns.names or rows.schema.types != list(
                writer.columns.types
            ):
                return []  # The driver adds columns.
            parts = writer.split(rows, limit)
            return [] if parts is None else writer.write(parts, self._make_name())
        except TableUnavailableError:
            return []  # The driver waits for it.

    def _make_name(self) -> str:
        """Return a name that no other attempt of any task has."""
        task = self._task
        return f"{task.stream}-{task.number:010d}-{task.part}-{uuid4().hex[:_NAME_LENGTH]}"
