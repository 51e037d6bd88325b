"""An output whose messages become Parquet files below directories that messages name."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

import pyarrow as pa

from streamer.connectors.files.message_path import MessagePath, completes_window
from streamer.connectors.files.writable import check_writable_file
from streamer.connectors.locations.location_files import LocationFiles
from streamer.connectors.tables.row_encoder import RowEncoder, add_declared_columns
from streamer.connectors.tables.rows import LearnedColumns, TableColumns
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import make_invalid_rejection

DEFAULT_MAX_FILE_ROWS: Final = 5_000_000


class ParquetOutput:
    """Encodes messages as rows, by the directory of each; see `sdk.output.protocols.Encoder`.

    Attributes:
        append: bytes of several batches may stand behind one another.
        ignores_batches: rows are the same however messages are cut into batches.
        compression: of the files.
        max_file_rows: rows after which another file of the same directory begins.
        success_file: the name of files that say that a directory is complete; empty for none.
    """

    append = True
    ignores_batches = True

    def __init__(
        self,
        directory: MessagePath,
        declared: pa.Schema,
        *,
        compression: str = "zstd",
        max_file_rows: int = DEFAULT_MAX_FILE_ROWS,
        success_file: str = "",
        permissions: Permissions = ALL,
        learned: LearnedColumns | None = None,
    ) -> None:
        """Take the directory, and the columns that the config names with their types."""
        self._permissions = permissions
        self._directory = directory
        self._declared = declared
        self.compression = compression
        self.max_file_rows = max_file_rows
        self.success_file = success_file
        self._encoder = RowEncoder(
            "Parquet files",
            lambda refresh: self.columns_of(pa.schema([])),
            learned=learned or LearnedColumns(),
        )

    def columns_of(self, known: pa.Schema) -> TableColumns:
        """Return the columns that rows may have, beside those that are known."""
        return TableColumns(
            add_declared_columns(known, self._declared),
            True,
            lambda name: "" if name else "it is empty",
        )

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return directories and their rows; and success files, which have none.

        Raises:
            SendError: some messages are no rows; its `errors` say which.
        """
        if self._directory.static is not None and not self.success_file:
            return [(self._directory.static, self._encoder.encode(batch))] if batch else []
        by_directory: dict[str, list[int]] = {}
        completed: dict[str, bytes] = {}
        errors: dict[int, str] = {}
        for index, message in enumerate(batch):
            try:
                directory = self._directory.of_message(message, ex)
            except MessageError as error:
                errors[index] = make_invalid_rejection(str(error))
                continue
            by_directory.setdefault(directory, []).append(index)
            if self.success_file and completes_window(message):
                completed[posixpath.join(directory, self.success_file)] = b""
        routed: list[tuple[str, bytes]] = []
        for directory, indices in by_directory.items():
            try:
                rows = self._encoder.encode([batch[index] for index in indices])
                routed.append((directory, rows))
            except SendError as error:
                errors |= {indices[at]: text for at, text in error.errors.items()}
        if errors:
            raise SendError(next(iter(errors.values())), errors)
        return [*routed, *completed.items()]

    def probe(self) -> str:
        """Check that files can be made."""
        if self._directory.is_location:
            return LocationFiles(self._permissions).check(self._directory.text)
        directory = self._directory.fixed_directory
        check_writable_file(Path(directory) / "x")
        return f"Parquet files in {directory}"
