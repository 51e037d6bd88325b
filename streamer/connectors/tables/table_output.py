"""An output whose messages become rows of a table: encoded in the workers, committed by the driver.

A message that does not fit the table is rejected by itself, in the worker, with the reason. Workers
remember the columns of the table, and look again when something does not fit, or is new.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pyarrow as pa

from streamer.connectors.tables.row_encoder import RowEncoder, add_declared_columns
from streamer.connectors.tables.rows import TableColumns
from streamer.connectors.tables.table_client import TableClient, TableUnavailableError
from streamer.core.execution import Execution
from streamer.core.message import Batch


class ColumnCache:
    """The columns of a table, as a worker process has last seen them. Threads may share it."""

    def __init__(self) -> None:
        """Begin without knowledge."""
        self._lock = threading.Lock()
        self._columns: pa.Schema | None = None
        self._is_loaded = False

    def read(self, load: Callable[[], pa.Schema | None], *, refresh: bool) -> pa.Schema | None:
        """Return the columns; None where there is no table yet.

        Args:
            load: reads them from the table.
            refresh: whether to read them again.
        """
        with self._lock:
            if refresh or not self._is_loaded:
                self._columns, self._is_loaded = load(), True
            return self._columns


class TableOutput:
    """Encodes messages as rows of one table; see `sdk.output.protocols.Encoder`.

    Attributes:
        client: the table.
        is_open: whether the table is made, and fields that it does not have become columns.
        append: bytes of several batches may stand behind one another.
        ignores_batches: rows are the same however messages are cut into batches.
    """

    append = True
    ignores_batches = True

    def __init__(
        self,
        client: TableClient,
        declared: pa.Schema,
        cache: ColumnCache,
        *,
        is_open: bool,
        keys: Sequence[str] = (),
    ) -> None:
        """Take the table.

        Args:
            client: the table.
            declared: the columns that the config names, with their types.
            cache: lasts as long as the worker.
            is_open: see the attribute.
            keys: the columns that tell rows apart, where a row replaces another; else none.
        """
        self.client = client
        self.is_open = is_open
        self._declared = declared
        self._cache = cache
        self._keys = list(keys)
        self._encoder = RowEncoder(client.describe(), self._load_columns)

    def columns_of(self, known: pa.Schema | None) -> TableColumns:
        """Return the columns that rows may have.

        Args:
            known: those of the table; None where there is none, or nobody could look at it.
        """
        schema = known if known is not None else pa.schema([])
        if self.is_open:
            schema = add_declared_columns(schema, self._declared)
        # Of a table that nobody could look at, the driver decides.
        is_open = self.is_open or known is None
        return TableColumns(schema, is_open, self.client.explain_name, self._keys)

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return the rows of messages.

        Raises:
            SendError: some messages are no rows of the table; its `errors` say which.
        """
        return [("", self._encoder.encode(batch))] if batch else []

    def _load_columns(self, refresh: bool) -> TableColumns:
        try:
            return self.columns_of(self._cache.read(self.client.load_columns, refresh=refresh))
        except TableUnavailableError:
            # The driver waits for it, and judges what is made without it.
            return self.columns_of(None)

    def probe(self) -> str:
        """Check that the table can be read."""
        return f"{self.client.describe()} {self.client.check()}"

    def preflight(self, stream: str) -> str:
        """Check the table as a stream starts; see `SupportsPreflight`."""
        try:
            self.client.check()
        except TableUnavailableError as error:
            return str(error)
        return ""

    def find_newest(self, rows: pa.Table) -> pa.Array:
        """Return the indexes of rows of which each key has one: the last, as they come."""
        numbers = pa.array(range(rows.num_rows), pa.int64())
        numbered = rows.select(self._keys).append_column("#", numbers)
        newest = numbered.group_by(self._keys).aggregate([("#", "max")]).column("#_max")
        return newest.combine_chunks().sort()
