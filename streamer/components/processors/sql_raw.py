"""`sql_raw`: runs statements for each message, and replaces it by the rows that they find.

It "runs an arbitrary SQL query against a database and (optionally) returns the result as an array
of objects, one for each row returned".
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    PACKAGES,
    TARGET_FIELDS,
    shared_database,
)
from streamer.connectors.sql.processor_base import SqlProcessor
from streamer.connectors.sql.raw_fields import EXEC_ONLY, raw_fields, raw_problems, read_queries
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

_EXEC_ONLY_FIELD: Final = Field(
    EXEC_ONLY,
    "bool",
    "True if the statement's rows, if it has any, are left alone. Without it, the message becomes "
    "the rows of the last statement, and those of all others are left alone.",
    optional=True,
)


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "sql_raw",
    "Runs SQL statements for each message, and replaces the message by the rows.",
    description=(
        "Several statements run in a transaction. When one fails, the message stays as it is, "
        "marked as failed. Placeholders are those of the database: `$1`, `$2` for `postgres`, `?` "
        "for `mysql` and `sqlite`."
    ),
    fields=(*TARGET_FIELDS, *raw_fields(_EXEC_ONLY_FIELD), *CONNECTION_FIELDS),
    check=raw_problems,
    examples=(
        Example(
            "Count, and read the count",
            "pipeline:\n"
            "  processors:\n"
            "    - sql_raw:\n"
            "        driver: sqlite\n"
            "        dsn: file:counts.db\n"
            "        query: UPDATE counts SET number = number + 1 WHERE id = ?\n"
            "        args_mapping: root = [ this.id ]\n"
            "        queries:\n"
            "          - query: SELECT number FROM counts WHERE id = ?\n"
            "            args_mapping: root = [ this.id ]\n",
        ),
    ),
    begin={"query": "SELECT 1"},
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
    limits="no `databricks`, `gocosmos`, `snowflake` and `spanner`",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> SqlProcessor:
    """Find the database and compile the mappings."""
    return SqlProcessor(shared_database(parsed, context), read_queries(parsed), context.component)
