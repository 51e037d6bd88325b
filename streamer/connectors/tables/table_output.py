"""An output whose messages become rows of a table: encoded in the workers, committed by the driver.

A message that does not fit the table is rejected by itself, in the worker, with the reason. Workers
remember the columns of the table, and look again when something does not fit, or is new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from streamer.connectors.tables.arrow_streams import encode_batch
from streamer.connectors.tables.column_types import name_column_type
from streamer.connectors.tables.commit_record import describe_commits
from streamer.connectors.tables.new_columns import (
    ChooseType,
    choose_by_schema,
    read_common_schema,
)
from streamer.connectors.tables.row_encoder import (
    ChooseOperation,
    RowEncoder,
    add_declared_columns,
)
from streamer.connectors.tables.row_operations import RowOperation, RowOperations
from streamer.connectors.tables.rows import TableColumns
from streamer.connectors.tables.table_client import TableClient, TableUnavailableError
from streamer.connectors.tables.task_rows import TaskRows
from streamer.connectors.tables.written_files import FileWriter
from streamer.core.errors import MessageError
from streamer.core.execution import Execution, MicroBatch
from streamer.core.json.parse import parse_json
from streamer.core.message import Batch, Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.processing.batching import BatchPolicy

_SHOWN_COMMITS: Final = 3
_MAX_WRITER_AGE_S: Final = 30.0
"""Seconds for which a worker writes files without a look at the table. Where it has changed, the
driver reads the rows back, and nothing is lost but time."""


class ColumnCache:
    """The columns of a table, as a worker process has last seen them. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without knowledge.

        Args:
            clock: seconds, which only grow.
        """
        self._lock = threading.Lock()
        self._clock = clock
        self._columns: pa.Schema | None = None
        self._is_loaded = False
        self._writer: FileWriter | None = None
        self._writer_until = 0.0

    def read(self, load: Callable[[], pa.Schema | None], *, refresh: bool) -> pa.Schema | None:
        """Return the columns; None where there is no table yet.

        Args:
            load: reads them from the table.
            refresh: whether to read them again.
        """
        with self._lock:
            if refresh or not self._is_loaded:
                self._columns, self._is_loaded = load(), True
                self._writer = None
            return self._columns

    def read_writer(self, open_writer: Callable[[], FileWriter | None]) -> FileWriter | None:
        """Return what writes files of the table, as it was some seconds ago at most.

        Args:
            open_writer: opens one for the table as it is now.
        """
        with self._lock:
            if self._writer is None or self._clock() >= self._writer_until:
                self._writer = open_writer()
                self._writer_until = self._clock() + _MAX_WRITER_AGE_S
            return self._writer


class NewColumns(NamedTuple):
    """Rules by which fields of messages become columns.

    Attributes:
        ignores_case: whether names that differ by case alone are the same.
        schema_metadata: the metadata of messages that has their schema; empty for none.
        make_choice: returns what chooses types, given what chooses them before; None for nothing.
        policy: how batches are cut and processed before; None to leave them as they are.
    """

    ignores_case: bool = False
    schema_metadata: str = ""
    make_choice: Callable[[ChooseType | None], ChooseType] | None = None
    policy: BatchPolicy | None = None

    @property
    def choose_type(self) -> ChooseType | None:
        """The choice of types for messages without a schema."""
        return None if self.make_choice is None else self.make_choice(None)


_NO_RULES: Final = NewColumns()


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
        policy: how batches are cut and processed before; None to leave them as they are.
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
        new_columns: NewColumns = _NO_RULES,
    ) -> None:
        """Take the table.

        Args:
            client: the table.
            declared: the columns that the config names, with their types.
            cache: lasts as long as the worker.
            is_open: see the attribute.
            keys: the columns that tell rows apart, where a row replaces another; else none.
            operations: what becomes of rows; None to replace by the keys, or else to insert.
            new_columns: how fields become columns.
        """
        self._new_columns = new_columns
        self.policy = new_columns.policy
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
        self._encoder = RowEncoder(
            *(client.describe(), self._load_columns, self.operation, self.keys),
            ignores_case=new_columns.ignores_case,
        )

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
        return TableColumns(
            *(schema, is_open, client.explain_name, self.keys, client.widens_maps),
            choose_type=self._new_columns.choose_type,
            ignores_case=self._new_columns.ignores_case,
        )

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

        return [("", encode_batch(self._build(batch, choose)))]

    def _build(self, batch: Batch, choose: ChooseOperation | None = None) -> pa.RecordBatch:
        return self._encoder.build(batch, choose, self._choose_by_metadata(batch))

    def _choose_by_metadata(self, batch: Batch) -> ChooseType | None:
        """Return what chooses types by the schema of the first message; None where it has none."""
        rules = self._new_columns
        schema = batch[0].meta.get(rules.schema_metadata) if rules.schema_metadata else None
        if schema is None:
            return None
        try:
            if isinstance(schema, str):
                schema = parse_json(schema.encode())
            types = read_common_schema(schema)
        except ValueError as error:
            text = f"the schema in the metadata {rules.schema_metadata} {error}"
            raise SendError(
                text, dict.fromkeys(range(len(batch)), make_invalid_rejection(text))
            ) from None
        by_schema = choose_by_schema(types)
        return by_schema if rules.make_choice is None else rules.make_choice(by_schema)

    def begin_task(self, task: MicroBatch, *, shares_disk: bool) -> TaskRows | None:
        """Return what collects the rows of a task; see `sdk.output.protocols.TaskEncoder`."""
        if self._by_message is not None or self.operation != RowOperation.INSERT:
            return None  # Rows that replace others are merged with the table, by the driver.
        return TaskRows(
            lambda batch, ex: self._build(batch),
            lambda: self._cache.read_writer(self.client.open_file_writer),
            task,
            shares_disk=shares_disk,
        )

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
