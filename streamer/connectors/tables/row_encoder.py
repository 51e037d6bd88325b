"""Messages as rows, with the reasons why some are none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from streamer.connectors.tables.arrow_streams import encode_batch
from streamer.connectors.tables.new_columns import ChooseType
from streamer.connectors.tables.row_operations import RowOperation, attach_operations
from streamer.connectors.tables.rows import (
    LearnedColumns,
    RowBatch,
    TableColumns,
    build_rows,
)
from streamer.core.errors import MessageError
from streamer.core.json.bulk import documents_of, parse_batch
from streamer.core.message import Batch, Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection

ChooseOperation = Callable[[Message], RowOperation]
"""Returns the operation of a message, or raises MessageError where it has none."""

LoadColumns = Callable[[bool], TableColumns]
"""Returns the columns that rows may have; they are read again where it is given true."""


class RowEncoder:
    """Encodes the messages of one task as rows."""

    def __init__(
        self,
        place: str,
        load_columns: LoadColumns,
        operation: RowOperation = RowOperation.INSERT,
        keys: Sequence[str] = (),
        learned: LearnedColumns | None = None,
        *,
        ignores_case: bool = False,
    ) -> None:
        """Take the columns.

        Args:
            place: where rows are written, for messages.
            load_columns: knows the columns.
            operation: of messages for which none is chosen.
            keys: the columns that tell rows apart.
            learned: the columns of messages before, where no table has columns: reading them again
                finds the same.
            ignores_case: whether fields belong to keys whose names differ by case alone.
        """
        self._ignores_case = ignores_case
        self._learned = learned
        self._operation = operation
        self._keys = keys
        self._place = place
        self._load_columns = load_columns
        self._has_refreshed = False

    def encode(self, batch: Batch, choose: ChooseOperation | None = None) -> bytes:
        """Return the rows of messages as bytes; see `build`."""
        return encode_batch(self.build(batch, choose))

    def build(
        self,
        batch: Batch,
        choose: ChooseOperation | None = None,
        choose_type: ChooseType | None = None,
    ) -> pa.RecordBatch:
        """Return the rows of messages.

        Args:
            batch: the messages.
            choose: returns the operation of a message; None where all have the same.
            choose_type: chooses the types of new columns for these messages alone.

        Raises:
            SendError: some messages are no rows; its `errors` say which, and why.
        """
        if choose is None and self._operation != RowOperation.DELETE:
            with suppress(ValueError, MessageError):
                made = self._build_rows(documents_of(batch, keep=True), (), choose_type)
                if not made.errors:
                    return made.rows
        parse_batch(batch)
        errors: dict[int, str] = {}
        documents: list[Any] = []
        operations: list[RowOperation] = []
        for index, message in enumerate(batch):
            try:
                document = message.doc
                operation = self._operation if choose is None else choose(message)
                documents.append(self._restrict(document, operation))
            except MessageError as error:
                errors[index] = make_invalid_rejection(str(error))
                documents.append({})
                operation = self._operation
            operations.append(operation)
        deleted = {at for at, one in enumerate(operations) if one == RowOperation.DELETE}
        made = self._build_rows(documents, deleted, choose_type)
        errors |= {
            index: Rejection(f"cannot write to {self._place}: {text}", Reason.INVALID)
            for index, text in made.errors.items()
            if index not in errors
        }
        if errors:
            raise SendError(next(iter(errors.values())), errors)
        return made.rows if choose is None else attach_operations(made.rows, operations)

    def _restrict(self, document: Any, operation: RowOperation) -> Any:
        """Return what a row takes of a message; one that removes a row needs its key alone."""
        if operation == RowOperation.DELETE and isinstance(document, dict):
            if self._ignores_case:
                keys = {name.casefold() for name in self._keys}
                return {name: one for name, one in document.items() if name.casefold() in keys}
            return {name: document.get(name) for name in self._keys}
        return document

    def _build_rows(
        self,
        documents: Sequence[Any],
        partial: Collection[int],
        choose_type: ChooseType | None,
    ) -> RowBatch:
        if self._learned is not None and (rows := self._learned.build_rows(documents)) is not None:
            return RowBatch(rows, {})
        columns = self._load_columns(False)
        if choose_type is not None:
            columns = columns._replace(choose_type=choose_type)
        made = build_rows(documents, columns, partial)
        if self._learned is not None:
            if not made.errors:
                self._learned.learn(made.rows.schema, columns.schema.names)
            return made
        is_strange = bool(made.errors) or made.rows.schema.types != columns.schema.types
        if is_strange and not self._has_refreshed:
            # Once for a task: another program, or the micro-batch before, may have changed it.
            self._has_refreshed = True
            columns = self._load_columns(True)
            if choose_type is not None:
                columns = columns._replace(choose_type=choose_type)
            made = build_rows(documents, columns, partial)
        return made


def add_declared_columns(schema: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """Return columns with those that the config names, as far as they are not there."""
    for field in declared:
        if field.name not in schema.names:
            schema = schema.append(field)
    return schema
