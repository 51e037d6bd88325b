"""The rows of a table for lookups: all of its newest version, on the driver."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.table_reader import NO_VERSION, TablePiece, TableReader, TableStep
from streamer.core.execution import Execution
from streamer.core.lookup_tables import TableRow
from streamer.sdk.lookup_table import TableError


class LookupRows:
    """Reads a table whole; see `RowSource`."""

    def __init__(self, reader: TableReader) -> None:
        """Take the table; nothing is opened yet."""
        self._reader = reader

    def read_rows(self, ex: Execution) -> Iterator[TableRow]:
        """Give the rows of the newest version.

        Raises:
            TableError: there is no such table, or its store does not answer.
            StreamerError: it has no such columns, or cannot be read.
        """
        reader = self._reader
        try:
            reader.check()
            version = reader.newest_version()
            if version is None:
                raise TableError(f"{reader.describe()} is not there")
            if version == NO_VERSION:
                return
            step = TableStep(version, is_snapshot=True)
            groups = range(reader.count_groups(step))
            files = itertools.chain.from_iterable(reader.list_files(step, one) for one in groups)
            context = reader.context_of(step)
            for file in files:
                if file.rows:
                    for batch in reader.read(TablePiece(file, step, 0, None, context), ex):
                        yield from reader.documents_of(batch.rows)
        except TableUnavailableError as error:
            raise TableError(str(error)) from None

    def change_sign(self) -> str | None:
        """Return the newest version.

        Raises:
            OSError: nobody knows it now.
        """
        return str(self._reader.newest_version())
