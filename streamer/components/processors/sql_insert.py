"""`sql_insert`: inserts a row for each message, which stays as it is.

It "inserts rows into an SQL database for each message, and leaves the message unchanged". The rows
of a batch go in one statement; when it fails, all messages of the batch are marked.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.sql import ArgumentsMapping, Database, SqlError
from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    INSERT_FIELDS,
    PACKAGES,
    TARGET_FIELDS,
    args_mapping,
    insert_problems,
    make_row_writer,
    shared_database,
)
from streamer.connectors.sql.row_changes import RowChange, RowWriter
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "sql_insert",
    "Inserts a row into a database for each message; messages pass unchanged.",
    description=(
        "The rows of a batch are inserted by one statement (several, in a transaction, where "
        "they are too many for one). If it fails, every message of the batch is marked as "
        "failed."
    ),
    fields=(*TARGET_FIELDS, *INSERT_FIELDS, *CONNECTION_FIELDS),
    check=insert_problems,
    examples=(
        Example(
            "Keep users",
            "pipeline:\n"
            "  processors:\n"
            "    - sql_insert:\n"
            "        driver: postgres\n"
            "        dsn: postgres://user:${PASSWORD}@localhost:5432/name\n"
            "        table: users\n"
            "        columns: [id, name]\n"
            "        args_mapping: root = [ this.user.id, this.user.name ]\n"
            "        suffix: ON CONFLICT (id) DO NOTHING\n",
        ),
    ),
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
    limits="no `databricks`, `gocosmos`, `snowflake` and `spanner`",
    requires=PACKAGES,
)


class SqlInsertProcessor:
    """Inserts the rows of a batch."""

    def __init__(
        self,
        database: Database,
        writer: RowWriter,
        arguments: ArgumentsMapping,
        origin: ComponentRef,
    ) -> None:
        self._database = database
        self._writer = writer
        self._arguments = arguments
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Insert rows; messages that give none are marked, and the others' are inserted."""
        rows: list[RowChange] = []
        inserted: list[int] = []
        made = list(batch)
        for index, message in enumerate(batch):
            try:
                rows.append(RowChange(self._arguments.evaluate(batch, index, ex)))
                inserted.append(index)
            except MessageError as error:
                made[index] = self._origin.fail(message, str(error), ex)
        try:
            self._database.begin(ex, self._origin)
            if rows:
                self._writer.write(rows)
        except SqlError as error:
            for index in inserted:
                made[index] = self._origin.fail(batch[index], str(error), ex)
        return [made]


def build(parsed: ParsedFields, context: BuildContext) -> SqlInsertProcessor:
    """Find the database and compile the mapping."""
    of = shared_database(parsed, context)
    arguments = ArgumentsMapping(args_mapping(parsed))
    return SqlInsertProcessor(
        of, make_row_writer(of, parsed), arguments, ComponentRef(context.component)
    )
