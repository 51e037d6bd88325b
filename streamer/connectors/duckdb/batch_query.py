"""A query over batches of messages: columns in, documents out."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from streamer.connectors.duckdb.batch_columns import BatchColumns, ColumnBuilder, build_table
from streamer.connectors.duckdb.client import QueryProcess, QueryRows
from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.query_text import BATCH, QueryText
from streamer.connectors.duckdb.session import SessionSettings
from streamer.connectors.tables.batch_table import make_row_documents
from streamer.core.errors import StreamerError
from streamer.core.json.parse import parse_json
from streamer.core.lookup_tables import LookupTable, current_tables
from streamer.core.message import Batch


class QueryResult(NamedTuple):
    """The result of a query over a batch.

    Attributes:
        documents: a document for each row.
        errors: why messages are no rows, by their index.
    """

    documents: Sequence[Any]
    errors: Mapping[int, str]


class BatchQuery:
    """A query with its process, for as long as the worker lives. Threads may share it."""

    def __init__(
        self,
        settings: SessionSettings,
        seconds: float,
        declared: pa.Schema,
        metadata: Sequence[str],
    ) -> None:
        """Take the query.

        Args:
            settings: of its session.
            seconds: how long one run may take.
            declared: the columns of the batch, where the config names them; else empty.
            metadata: keys of metadata that are columns too.
        """
        self._process = QueryProcess(settings, seconds)
        self._files = {file.name.lower() for file in settings.files}
        self._declared, self._metadata = declared, metadata
        self._builder: ColumnBuilder | None = None
        self._lock = threading.Lock()
        self._tables: dict[str, tuple[LookupTable, pa.Table]] = {}

    def run(self, batch: Batch, skipped: Sequence[int]) -> QueryResult:
        """Run the query over a batch.

        Args:
            batch: the messages.
            skipped: the indexes of messages that take no part.

        Raises:
            QueryError: it cannot be run.
        """
        text = self._process.load_query_text()
        columns = self._build_columns(text, batch, skipped)
        if not columns.rows.num_rows:
            return QueryResult((), columns.errors)
        answer = self._process.run(columns.rows, self._find_tables(text))
        return QueryResult(_make_documents(answer), columns.errors)

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _build_columns(self, text: QueryText, batch: Batch, skipped: Sequence[int]) -> BatchColumns:
        builder = self._builder
        if builder is None:
            builder = self._builder = ColumnBuilder(text, self._declared, self._metadata)
        return builder.build(batch, skipped)

    def _find_tables(self, text: QueryText) -> dict[str, tuple[LookupTable, pa.Table]]:
        """Return the lookup tables of the query, each made anew when its version is another."""
        labels = {
            table.name for table in text.tables if table.name.lower() not in {BATCH, *self._files}
        }
        return {label: self._find_table(label) for label in labels}

    def _find_table(self, label: str) -> tuple[LookupTable, pa.Table]:
        tables = current_tables()
        if tables is None:
            raise QueryError(f"there is no table {label}; expected {BATCH}, or a table of files")
        try:
            table = tables.find(label)
        except StreamerError as error:
            raise QueryError(str(error)) from None
        with self._lock:
            known = self._tables.get(label)
            if known is None or known[0] is not table:
                known = self._tables[label] = table, build_table(label, table.all().values())
            return known


def _make_documents(answer: QueryRows) -> list[Any]:
    try:
        documents: list[Any] = make_row_documents(answer.table)
    except (ValueError, OverflowError) as error:
        raise QueryError(f"the rows of the query are no messages: {error}") from None
    for at in answer.json_columns:
        name = answer.table.schema.names[at]
        for document in documents:
            if document[name] is not None:
                document[name] = _parse(document[name])
    return documents


def _parse(text: str) -> Any:
    try:
        return parse_json(text.encode())
    except ValueError:
        return text
