"""`sql_insert`: "inserts a row into an SQL database for each message".

The rows of a batch go in one statement, so that a batch is there as a whole or not at all.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.sql import ArgumentsMapping, Database, InsertStatement, SqlError
from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    INSERT_FIELDS,
    PACKAGES,
    TARGET_FIELDS,
    args_mapping,
    read_insert,
    shared_database,
)
from streamer.connectors.sql.output_base import connect_database, failure_text, probe_database
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, SendError, max_in_flight_field
from streamer.sdk.output.rejection import as_shared, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "sql_insert",
    "Inserts a row into a database for each message.",
    description=(
        "The rows of a batch are inserted by one statement (several, in a transaction, where they "
        "are too many for one). A batch that was inserted may be inserted again after a failure of "
        "the program: let a `suffix` such as `ON CONFLICT … DO NOTHING` take care of that."
    ),
    fields=(
        *TARGET_FIELDS,
        *INSERT_FIELDS,
        max_in_flight_field(64),
        *CONNECTION_FIELDS,
        BATCHING_FIELD,
    ),
    check=batching_problems,
    examples=(
        Example(
            "Keep users",
            "output:\n"
            "  sql_insert:\n"
            "    driver: postgres\n"
            "    dsn: postgres://user:${PASSWORD}@localhost:5432/name\n"
            "    table: users\n"
            "    columns: [id, name]\n"
            "    args_mapping: root = [ this.user.id, this.user.name ]\n"
            "    suffix: ON CONFLICT (id) DO NOTHING\n",
        ),
    ),
    categories=("Services",),
    limits="`mysql`, `postgres` and `sqlite`",
    requires=PACKAGES,
)


class SqlInsertOutput(Output):
    """Inserts the rows of a batch."""

    def __init__(
        self,
        database: Database,
        insert: InsertStatement,
        arguments: ArgumentsMapping,
        origin: ComponentRef,
    ) -> None:
        self._database = database
        self._insert = insert
        self._arguments = arguments
        self._origin = origin

    def connect(self, ex: Execution) -> None:
        """Connect, and run what is to be run first."""
        connect_database(self._database, self._origin, ex)

    def send(self, batch: Batch, ex: Execution) -> None:
        """Insert the rows of a batch, all of them or none."""
        rows: dict[int, Any] = {}
        failed: dict[int, str] = {}
        for index in range(len(batch)):
            try:
                rows[index] = self._arguments.evaluate(batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        if rows:
            try:
                self._database.insert(self._insert, [*rows.values()])
            except SqlError as error:
                text = failure_text(error)
                if not failed:
                    raise SendError(text) from None
                if len(rows) > 1:
                    # All of them are rolled back for one.
                    text = as_shared(text)
                failed |= dict.fromkeys(rows, text)
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def probe(self) -> str:
        """Check that the database answers."""
        return probe_database(self._database)


def build(parsed: ParsedFields, context: BuildContext) -> SqlInsertOutput:
    """Find the database and compile the mapping."""
    of = shared_database(parsed, context)
    output = SqlInsertOutput(
        of,
        read_insert(parsed),
        ArgumentsMapping(args_mapping(parsed)),
        ComponentRef(context.component),
    )
    output.max_in_flight = parsed[MAX_IN_FLIGHT]
    output.policy = output_policy(parsed, context)
    return output
