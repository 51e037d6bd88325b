"""`sql_insert`: "inserts a row into an SQL database for each message".

The rows of all batches at hand go in one transaction, in order: a commit for each of the small
batches that windows give would take most of the time. A batch is there as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from streamer.bloblang import Mapping, compile_mapping
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
from streamer.connectors.sql.output_base import connect_database, failure_text, probe_database
from streamer.connectors.sql.row_changes import UPSERT_BY, RowChange, RowWriter
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.output.protocols import (
    MAX_IN_FLIGHT,
    BulkOutput,
    SendError,
    max_in_flight_field,
)
from streamer.sdk.output.rejection import as_shared, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

DELETE_WHEN: Final = "delete_when"

# A commit takes as long as some hundred rows; what is in one holds locks until its end.
_MAX_TRANSACTION_ROWS: Final = 2_000


def _delete_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    if parsed[DELETE_WHEN] and not parsed[UPSERT_BY]:
        yield DELETE_WHEN, f"needs {UPSERT_BY}: the columns that say which row is deleted"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "sql_insert",
    "Inserts a row into a database for each message.",
    description=(
        "Rows are inserted in the order of their messages. All batches at hand, such as the "
        "groups of a window, go together: some 2,000 rows are a transaction, with a statement "
        "for all that follow one another, so `batching` is not needed for speed. A batch is "
        "inserted completely or not at all. Rows that the database refuses are found by "
        "halving and rejected alone; the others are inserted.\n"
        "\n"
        "A row that was inserted may be inserted again after a failure of the program: let "
        "`upsert_by`, or a `suffix` such as `ON CONFLICT (id) DO NOTHING`, take care of that.\n"
        "\n"
        "With `delete_when` the table follows a stream of changes, such as that of Debezium: "
        "upserts and deletes stay in their order."
    ),
    fields=(
        *TARGET_FIELDS,
        *INSERT_FIELDS,
        Field(
            DELETE_WHEN,
            "string",
            "A Bloblang query that gives true for a message whose row is to be deleted. "
            "`args_mapping` must give the columns of `upsert_by` for it; those besides do not "
            "count.",
            default="",
            mapping=True,
            examples=('this.op == "d"',),
        ),
        max_in_flight_field(64),
        *CONNECTION_FIELDS,
        BATCHING_FIELD,
    ),
    check=join_checks(insert_problems, _delete_problems, batching_problems),
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
            "    upsert_by: [id]\n",
        ),
        Example(
            "A table that follows the changes of another one",
            "output:\n"
            "  sql_insert:\n"
            "    driver: postgres\n"
            "    dsn: postgres://user:${PASSWORD}@localhost:5432/name\n"
            "    table: users\n"
            "    columns: [id, name]\n"
            "    args_mapping: root = [ (this.after | this.before).id, this.after.name ]\n"
            "    upsert_by: [id]\n"
            '    delete_when: this.op == "d"\n',
        ),
    ),
    categories=("Services",),
    limits="no `databricks`, `gocosmos`, `snowflake` and `spanner`",
    requires=PACKAGES,
)


class _BatchRows(NamedTuple):
    """The rows of one batch.

    Attributes:
        number: of the batch.
        changes: what is written, by the index of the message.
        failed: why there is no row of a message, by its index.
    """

    number: int
    changes: dict[int, RowChange]
    failed: dict[int, str]


class SqlInsertOutput(BulkOutput):
    """Inserts the rows of batches."""

    max_group_messages = _MAX_TRANSACTION_ROWS

    def __init__(
        self,
        database: Database,
        writer: RowWriter,
        arguments: ArgumentsMapping,
        delete_when: Mapping | None,
        origin: ComponentRef,
    ) -> None:
        self._database = database
        self._writer = writer
        self._arguments = arguments
        self._delete_when = delete_when
        self._origin = origin

    def connect(self, ex: Execution) -> None:
        """Connect, and run what is to be run first."""
        connect_database(self._database, self._origin, ex)

    def send_all(self, batches: Sequence[Batch], ex: Execution) -> list[SendError | None]:
        """Insert the rows of batches: each all of its rows or none."""
        read = [self._read_rows(number, batch, ex) for number, batch in enumerate(batches)]
        errors: list[SendError | None] = [None] * len(batches)
        for of_batch in read:
            if of_batch.failed:
                text = next(iter(of_batch.failed.values()))
                errors[of_batch.number] = SendError(text, of_batch.failed)
        self._write([of_batch for of_batch in read if of_batch.changes], errors)
        return errors

    def _read_rows(self, number: int, batch: Batch, ex: Execution) -> _BatchRows:
        rows = _BatchRows(number, {}, {})
        for index in range(len(batch)):
            try:
                values = self._arguments.evaluate(batch, index, ex)
                is_delete = self._delete_when is not None and query_bool(
                    self._delete_when, batch, index, ex
                )
                rows.changes[index] = RowChange(values, is_delete)
            except MessageError as error:
                rows.failed[index] = make_invalid_rejection(str(error))
        return rows

    def _write(self, read: Sequence[_BatchRows], errors: list[SendError | None]) -> bool:
        """Write batches together, or in halves where that fails for what is in them.

        One of them is refused, or another task changes the same rows in another order: of two small
        transactions that is less likely than of two large ones.

        Returns:
            Whether what comes after them may be written.
        """
        if not read:
            return True
        try:
            self._writer.write([row for one in read for row in one.changes.values()])
        except SqlError as error:
            if (error.is_refused or error.is_deadlock) and len(read) > 1:
                middle = len(read) // 2
                goes_on = self._write(read[:middle], errors)
                if goes_on:
                    return self._write(read[middle:], errors)
                read = read[middle:]
            for one in read:
                errors[one.number] = _failure_of(one, error)
            return error.is_refused and len(read) == 1
        return True

    def probe(self) -> str:
        """Check that the database answers."""
        return probe_database(self._database)


def _failure_of(rows: _BatchRows, error: SqlError) -> SendError:
    """Return the failure of a batch whose rows were not written."""
    text = failure_text(error)
    if not rows.failed:
        return SendError(text)
    if len(rows.changes) > 1:
        # All of them are rolled back for one.
        text = as_shared(text)
    failed = rows.failed | dict.fromkeys(rows.changes, text)
    return SendError(next(iter(failed.values())), failed)


def build(parsed: ParsedFields, context: BuildContext) -> SqlInsertOutput:
    """Find the database and compile the mappings."""
    of = shared_database(parsed, context)
    delete_when = parsed[DELETE_WHEN]
    output = SqlInsertOutput(
        of,
        make_row_writer(of, parsed),
        ArgumentsMapping(args_mapping(parsed)),
        compile_mapping(delete_when) if delete_when else None,
        ComponentRef(context.component),
    )
    output.max_in_flight = parsed[MAX_IN_FLIGHT]
    output.policy = output_policy(parsed, context)
    return output
