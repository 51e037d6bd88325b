"""`sql_raw`: "executes a select query and creates a message for each row received"."""

from __future__ import annotations

from typing import Final

from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    PACKAGES,
    QUERY,
    TARGET_FIELDS,
    args_field,
    args_mapping,
)
from streamer.connectors.sql.input_base import AUTO_REPLAY_NACKS, QueryInput
from streamer.connectors.sql.raw_fields import query_field
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.INPUT,
    "sql_raw",
    "Runs a query, and makes a message of each row.",
    description=(
        "The driver runs the query once, and its rows are safe on its disk before they are "
        "processed; after the last one the input has ended. A query that was interrupted, "
        "because the program stopped or the connection was lost, is run again completely."
    ),
    fields=(
        *TARGET_FIELDS,
        query_field(optional=False),
        args_field("placeholder of the query", optional=True),
        AUTO_REPLAY_NACKS,
        *CONNECTION_FIELDS,
    ),
    examples=(
        Example(
            "Counts of names",
            "input:\n"
            "  sql_raw:\n"
            "    driver: postgres\n"
            "    dsn: postgres://user:${PASSWORD}@localhost:5432/name\n"
            "    query: SELECT name, count(*) FROM users WHERE seen > $1 GROUP BY name\n"
            "    args_mapping: root = [ now().ts_unix() - 3600 ]\n",
        ),
    ),
    categories=("Services",),
    delivery="at least once: a query that was cut short runs again",
    limits="no `databricks`, `gocosmos`, `snowflake` and `spanner`",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> QueryInput:
    """Compile the mapping; the query is run once the input is opened."""
    origin = ComponentRef(context.component)
    return QueryInput("sql_raw", parsed, parsed[QUERY], args_mapping(parsed), True, origin)
