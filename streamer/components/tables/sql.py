"""`sql`: a lookup table that a query gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.sql.database_fields import (
    CONNECTION_FIELDS,
    PACKAGES,
    QUERY,
    TARGET_FIELDS,
    own_database,
)
from streamer.core.execution import Execution
from streamer.core.lookup_tables import TableRow
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.lookup_table import TABLE_BEGIN, TableLoader, table_fields, table_problems
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

_FETCH_ROWS: Final = 1000

SPEC: Final = Spec(
    Kind.TABLE,
    "sql",
    "Looks up rows that a query gives.",
    description=(
        "The driver runs the query: workers need no way to the database. See "
        "[lookup tables](../../lookup-tables.md)."
    ),
    fields=(
        *TARGET_FIELDS,
        Field(
            QUERY,
            "string",
            "The query.",
            access=Access.REMOTE,
            examples=("SELECT id, name, country FROM customers",),
        ),
        *table_fields("5m", "to run the query again"),
        *CONNECTION_FIELDS,
    ),
    check=table_problems,
    begin=TABLE_BEGIN,
    examples=(
        Example(
            "Customers of a database",
            "pipeline:\n"
            "  processors:\n"
            '    - mutation: root.customer = table("customers").get(this.customer_id)\n'
            "table_resources:\n"
            "  - label: customers\n"
            "    sql:\n"
            "      driver: postgres\n"
            "      dsn: postgres://user:${PASSWORD}@localhost:5432/shop\n"
            "      query: SELECT id, name, country FROM customers\n"
            "      key: id\n"
            "      refresh_interval: 1m\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


class QueryRowSource:
    """Runs a query for the rows of a table."""

    def __init__(self, parsed: ParsedFields, origin: ComponentRef) -> None:
        """Take the fields, and who speaks in the log."""
        self._parsed, self._origin = parsed, origin

    def read_rows(self, ex: Execution) -> Iterator[TableRow]:
        """Give the rows; see `RowSource`."""
        database = own_database(self._parsed)
        try:
            database.begin(ex, self._origin)
            for rows in database.stream(self._parsed[QUERY], [], _FETCH_ROWS):
                yield from rows.objects()
        finally:
            database.close()

    def change_sign(self) -> str | None:
        """Return None: only the query tells."""
        return None


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take the query."""
    return TableLoader(parsed, QueryRowSource(parsed, ComponentRef(context.component)), context)
