"""`sql_select`: replaces each message by the rows that a SELECT finds.

It "runs an SQL select query against a database and returns the result as an array of objects, one
for each row returned, containing a key for each column queried and its value".
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    PACKAGES,
    SELECT_FIELDS,
    TARGET_FIELDS,
    WHERE,
    args_mapping,
    read_select,
    shared_database,
)
from streamer.connectors.sql.processor_base import SqlProcessor, StatementTemplate
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "sql_select",
    "Replaces each message by the rows of a table, an array of objects.",
    description=(
        "A query that fails leaves the message as it is, marked as failed. To keep the message and "
        "add the rows to it, put the processor into a `branch`."
    ),
    fields=(*TARGET_FIELDS, *SELECT_FIELDS, *CONNECTION_FIELDS),
    examples=(
        Example(
            "Look up a user",
            "pipeline:\n"
            "  processors:\n"
            "    - sql_select:\n"
            "        driver: postgres\n"
            "        dsn: postgres://user:${PASSWORD}@localhost:5432/name\n"
            "        table: users\n"
            "        columns: ['*']\n"
            "        where: id = ?\n"
            "        args_mapping: root = [ this.user.id ]\n",
        ),
    ),
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
    limits="no `databricks`, `gocosmos`, `snowflake` and `spanner`",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> SqlProcessor:
    """Find the database and compile the mapping."""
    of = shared_database(parsed, context)
    # As in Redpanda Connect, arguments are those of `where`.
    mapping = args_mapping(parsed)
    query = StatementTemplate(read_select(parsed), mapping, takes_arguments=bool(parsed[WHERE]))
    return SqlProcessor(of, [query], context.component)
