"""`iceberg`: a lookup table that is a table of Apache Iceberg."""

from __future__ import annotations

from typing import Final

from streamer.connectors.iceberg.catalog_fields import (
    CATALOG,
    CATALOG_FIELD,
    NAME,
    NAMESPACE,
    NAMESPACE_FIELD,
    STORAGE,
    STORAGE_FIELD,
    TABLE,
    TABLE_FIELD,
    catalog_problems,
    read_catalog,
)
from streamer.connectors.iceberg.gcs_token import CATALOG_PACKAGES, read_gcs_token
from streamer.connectors.tables.input_fields import (
    COLUMNS_FIELD,
    REFRESH,
    STOP,
    WHERE_FIELD,
    read_selection,
)
from streamer.sdk.lookup_table import TABLE_BEGIN, TableLoader, table_fields, table_problems
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

SPEC: Final = Spec(
    Kind.TABLE,
    "iceberg",
    "Looks up rows of a table of Apache Iceberg.",
    description=(
        "The driver reads all rows of the current snapshot, and reads them again when there is "
        "another one. Times, dates and decimals are texts. See "
        "[lookup tables](../../lookup-tables.md)."
    ),
    fields=(
        CATALOG_FIELD,
        NAMESPACE_FIELD,
        TABLE_FIELD,
        COLUMNS_FIELD,
        WHERE_FIELD,
        *table_fields(*REFRESH),
        STORAGE_FIELD,
    ),
    check=join_checks(catalog_problems, table_problems),
    begin={
        **TABLE_BEGIN,
        "catalog.url": "sqlite:///catalog.db",
        "catalog.warehouse": "./warehouse",
        "namespace": "demo",
        "table": "rows",
    },
    examples=(
        Example(
            "The place of each light",
            "pipeline:\n"
            "  processors:\n"
            '    - mutation: root.place = table("lights").get(this.light).place\n'
            "table_resources:\n"
            "  - label: lights\n"
            "    iceberg:\n"
            "      catalog: { url: sqlite:///catalog.db, warehouse: ./warehouse }\n"
            "      namespace: demo\n"
            "      table: lights\n"
            "      columns: [light, place]\n"
            "      key: light\n",
        ),
    ),
    categories=("Tables",),
    limits="no equality deletes; files in Parquet",
    requires=CATALOG_PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take the table; it is opened when the stream starts."""
    from streamer.connectors.iceberg.iceberg_reader import IcebergReader
    from streamer.connectors.tables.lookup_rows import LookupRows

    reader = IcebergReader(
        parsed[CATALOG][NAME],
        read_catalog(parsed),
        (*parsed[NAMESPACE].split("."), parsed[TABLE]),
        read_selection(parsed),
        STOP,
        parsed.permissions,
        read_gcs_token(parsed[STORAGE], parsed.permissions),
    )
    return TableLoader(parsed, LookupRows(reader), context)
