"""An output whose messages become rows of a table: encoded in the workers, committed by the driver.

A message that does not fit the table is rejected by itself, in the worker, with the reason. Workers
remember the columns of the table, and look again when something does not fit, or is new.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from streamer.connectors.tables.column_types import name_column_type
from streamer.connectors.tables.commit_record import describe_commits
from streamer.connectors.tables.row_encoder import RowEncoder, add_declared_columns
from streamer.connectors.tables.row_operations import RowOperation, RowOperations
from streamer.connectors.tables.rows import TableColumns
from streamer.connectors.tables.table_client import TableClient, TableUnavailableError
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message

_SHOWN_COMMITS: Final = 3


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
        keys: the columns that tell rows apart.
        operation: what becomes of rows, unless their messages say it.
        is_repeatable: whether rows may come again: they take their own places.
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
        operations: RowOperations | None = None,
    ) -> None:
        """Take the table.

        Args:
            client: the table.
            declared: the columns that the config names, with their types.
            cache: lasts as long as the worker.
            is_open: see the attribute.
            keys: the columns that tell rows apart, where a row replaces another; else none.
            operations: what becomes of rows; None to replace by the keys, or else to insert.
        """
        self.client = client
        self.is_open = is_open
        self.keys = tuple(keys)
        self._declared = declared
        self._cache = cache
        self._by_message = (
            None if operations is None or operations.static is not None else operations
        )
        self.operation = RowOperation.UPSERT if keys else RowOperation.INSERT
        if operations is not None:
            self.operation = operations.static or RowOperation.INSERT
        self.is_repeatable = self._by_message is None and self.operation != RowOperation.INSERT
        self._encoder = RowEncoder(client.describe(), self._load_columns, self.operation, self.keys)

    def describe(self) -> str:
        """Return where the table is."""
        return self.client.describe()

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
        client = self.client
        return TableColumns(schema, is_open, client.explain_name, self.keys, client.widens_maps)

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return the rows of messages.

        Raises:
            SendError: some messages are no rows of the table; its `errors` say which.
        """
        if not batch:
            return []
        by_message, choose = self._by_message, None
        if by_message is not None:

            def choose(message: Message) -> RowOperation:
                operation = by_message.of_message(message, ex)
                if operation != RowOperation.INSERT and not self.keys:
                    raise MessageError(
                        f"the row operation is {operation.word}, and no columns tell rows apart; "
                        "name them in the config"
                    )
                return operation

        return [("", self._encoder.encode(batch, choose))]

    def _load_columns(self, refresh: bool) -> TableColumns:
        try:
            return self.columns_of(self._cache.read(self.client.load_columns, refresh=refresh))
        except TableUnavailableError:
            # The driver waits for it, and judges what is made without it.
            return self.columns_of(None)

    def probe(self) -> str:
        """Check that the table can be read; say what is made of it, and its last commits."""
        known, what = self.client.load_columns(), [self.client.check()]
        declared = [one for one in self._declared if known is None or one.name not in known.names]
        if declared and self.is_open:
            named = ", ".join(f"{one.name} {name_column_type(one.type)}" for one in declared)
            what.append(f"{'has' if known is None else 'gets'} the columns {named}")
        if commits := describe_commits(self.client.read_commits(_SHOWN_COMMITS)):
            what.append(commits)
        return f"{self.client.describe()} {'; '.join(what)}"

    def preflight(self, stream: str) -> str:
        """Check the table as a stream starts; see `SupportsPreflight`."""
        try:
            self.client.check()
        except TableUnavailableError as error:
            return str(error)
        return ""
