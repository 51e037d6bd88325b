"""`sql_select`: "executes a select query and creates a message for each row received"."""

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
)
from streamer.connectors.sql.input_base import AUTO_REPLAY_NACKS, QueryInput
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.INPUT,
    "sql_select",
    "Reads rows of a table, and makes a message of each.",
    description=(
        "The driver runs the query once, and its rows are safe on its disk before they are "
        "processed; after the last one the input has ended. A query that was interrupted, "
        "because the program stopped or the connection was lost, is run again completely."
    ),
    fields=(*TARGET_FIELDS, *SELECT_FIELDS, AUTO_REPLAY_NACKS, *CONNECTION_FIELDS),
    examples=(
        Example(
            "What is younger than an hour",
            "input:\n"
            "  sql_select:\n"
            "    driver: postgres\n"
            "    dsn: postgres://user:${PASSWORD}@localhost:5432/name\n"
            "    table: users\n"
            "    columns: ['*']\n"
            "    where: seen > ?\n"
            "    args_mapping: root = [ now().ts_unix() - 3600 ]\n",
        ),
    ),
    categories=("Services",),
    delivery="at least once: a query that was cut short runs again",
    limits="no `databricks`, `gocosmos`, `snowflake` and `spanner`",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> QueryInput:
    """Write the query and compile the mapping; it is run once the input is opened."""
    origin = ComponentRef(context.component)
    query = read_select(parsed)
    # As in Redpanda Connect, arguments are those of `where`.
    takes = bool(parsed[WHERE])
    return QueryInput("sql_select", parsed, query, args_mapping(parsed), takes, origin)
