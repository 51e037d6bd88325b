"""`delta`: a lookup table that is a Delta table."""

from __future__ import annotations

from typing import Final

from streamer.connectors.delta.delta_fields import (
    PATH,
    PATH_FIELD,
    STORAGE_OPTIONS,
    STORAGE_OPTIONS_FIELD,
)
from streamer.connectors.tables.input_fields import (
    COLUMNS_FIELD,
    REFRESH,
    STOP,
    WHERE_FIELD,
    read_selection,
)
from streamer.sdk.lookup_table import TABLE_BEGIN, TableLoader, table_fields, table_problems
from streamer.sdk.spec import BuildContext, Example, Kind, Package, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.TABLE,
    "delta",
    "Looks up rows of a Delta table.",
    description=(
        "The driver reads all rows of the newest version, and reads them again when there is "
        "another one. Times, dates and decimals are texts. See "
        "[lookup tables](../../lookup-tables.md)."
    ),
    fields=(
        PATH_FIELD,
        COLUMNS_FIELD,
        WHERE_FIELD,
        *table_fields(*REFRESH),
        STORAGE_OPTIONS_FIELD,
    ),
    check=table_problems,
    begin=TABLE_BEGIN,
    examples=(
        Example(
            "The place of each light",
            "pipeline:\n"
            "  processors:\n"
            '    - mutation: root.place = table("lights").get(this.light).place\n'
            "table_resources:\n"
            "  - label: lights\n"
            "    delta:\n"
            "      path: ./lights\n"
            "      columns: [light, place]\n"
            "      key: light\n",
        ),
    ),
    categories=("Tables",),
    limits="no deletion vectors, no mapping of column names",
    requires=(Package("deltalake"),),
)


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take the table; it is opened when the stream starts."""
    from streamer.connectors.delta.delta_reader import DeltaReader
    from streamer.connectors.tables.lookup_rows import LookupRows

    reader = DeltaReader(
        parsed.permissions.file(parsed[PATH]),
        parsed[STORAGE_OPTIONS],
        read_selection(parsed),
        STOP,
    )
    return TableLoader(parsed, LookupRows(reader), context)
