"""Messages as rows, with the reasons why some are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from streamer.connectors.tables.arrow_streams import encode_batch
from streamer.connectors.tables.rows import RowBatch, TableColumns, build_rows
from streamer.core.errors import MessageError
from streamer.core.json.bulk import parse_batch
from streamer.core.message import Batch
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection

LoadColumns = Callable[[bool], TableColumns]
"""Returns the columns that rows may have; they are read again where it is given true."""


class RowEncoder:
    """Encodes the messages of one task as rows."""

    def __init__(self, place: str, load_columns: LoadColumns) -> None:
        """Take the columns.

        Args:
            place: where rows are written, for messages.
            load_columns: knows the columns.
        """
        self._place = place
        self._load_columns = load_columns
        self._has_refreshed = False

    def encode(self, batch: Batch) -> bytes:
        """Return the rows of messages.

        Raises:
            SendError: some messages are no rows; its `errors` say which, and why.
        """
        parse_batch(batch)
        errors: dict[int, str] = {}
        documents: list[Any] = []
        for index, message in enumerate(batch):
            try:
                documents.append(message.doc)
            except MessageError as error:
                errors[index] = make_invalid_rejection(str(error))
                documents.append({})
        made = self._build_rows(documents)
        errors |= {
            index: Rejection(f"cannot write to {self._place}: {text}", Reason.INVALID)
            for index, text in made.errors.items()
            if index not in errors
        }
        if errors:
            raise SendError(next(iter(errors.values())), errors)
        return encode_batch(made.rows)

    def _build_rows(self, documents: Sequence[Any]) -> RowBatch:
        columns = self._load_columns(False)
        made = build_rows(documents, columns)
        is_strange = bool(made.errors) or len(made.rows.schema) > len(columns.schema)
        if is_strange and not self._has_refreshed:
            # Once for a task: another program, or the micro-batch before, may have changed it.
            self._has_refreshed = True
            made = build_rows(documents, self._load_columns(True))
        return made


def add_declared_columns(schema: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """Return columns with those that the config names, as far as they are not there."""
    for field in declared:
        if field.name not in schema.names:
            schema = schema.append(field)
    return schema
