"""`sql_raw`: "executes an arbitrary SQL query for each message", or several of them."""

from __future__ import annotations

from typing import Final

from streamer.connectors.sql import Database, SqlError
from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    PACKAGES,
    TARGET_FIELDS,
    shared_database,
)
from streamer.connectors.sql.output_base import connect_database, failure_text, probe_database
from streamer.connectors.sql.processor_base import StatementSequence
from streamer.connectors.sql.raw_fields import WHEN_FIELD, raw_fields, raw_problems, read_queries
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, SendError, max_in_flight_field
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

SPEC: Final = Spec(
    Kind.OUTPUT,
    "sql_raw",
    "Runs SQL statements for each message.",
    description=(
        "The messages of a batch are sent one after the other; the statements of one message run "
        "in a transaction where there are several. When one fails, it and those after it are sent "
        "again. Placeholders are those of the database: `$1`, `$2` for `postgres`, `?` for "
        "`mysql` and `sqlite`."
    ),
    fields=(
        *TARGET_FIELDS,
        *raw_fields(in_list=(WHEN_FIELD,)),
        max_in_flight_field(64),
        *CONNECTION_FIELDS,
        BATCHING_FIELD,
    ),
    check=join_checks(raw_problems, batching_problems),
    examples=(
        Example(
            "Count",
            "output:\n"
            "  sql_raw:\n"
            "    driver: sqlite\n"
            "    dsn: file:counts.db\n"
            "    query: UPDATE counts SET number = number + 1 WHERE id = ?\n"
            "    args_mapping: root = [ this.id ]\n",
        ),
    ),
    begin={"query": "SELECT 1"},
    categories=("Services",),
    limits="no `databricks`, `gocosmos`, `snowflake` and `spanner`",
    requires=PACKAGES,
)


class SqlRawOutput(Output):
    """Runs statements for each message."""

    def __init__(
        self, database: Database, statements: StatementSequence, origin: ComponentRef
    ) -> None:
        self._database = database
        self._statements = statements
        self._origin = origin

    def connect(self, ex: Execution) -> None:
        """Connect, and run what is to be run first."""
        connect_database(self._database, self._origin, ex)

    def send(self, batch: Batch, ex: Execution) -> None:
        """Run the statements of each message."""
        failed: dict[int, str] = {}
        for index in range(len(batch)):
            try:
                self._statements.run(batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
            except SqlError as error:
                if not error.is_refused:
                    failed |= dict.fromkeys(range(index, len(batch)), str(error))
                    raise SendError(str(error), failed) from None
                failed[index] = failure_text(error)
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def probe(self) -> str:
        """Check that the database answers."""
        return probe_database(self._database)


def build(parsed: ParsedFields, context: BuildContext) -> SqlRawOutput:
    """Find the database and compile the mappings."""
    of = shared_database(parsed, context)
    output = SqlRawOutput(
        of, StatementSequence(of, read_queries(parsed)), ComponentRef(context.component)
    )
    output.max_in_flight = parsed[MAX_IN_FLIGHT]
    output.policy = output_policy(parsed, context)
    return output
