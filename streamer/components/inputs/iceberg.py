"""`iceberg`: reads the rows of a table of Apache Iceberg, and those that are appended to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    METADATA_DESCRIPTION,
    ON_CHANGE,
    ROWS_DESCRIPTION,
    TABLE_INPUT_FIELDS,
    explain_table_input,
    make_table_source,
    read_selection,
    start_from_field,
)
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

if TYPE_CHECKING:
    from streamer.connectors.tables.table_source import TableSource

SPEC: Final = Spec(
    Kind.INPUT,
    "iceberg",
    "Reads the rows of a table of Apache Iceberg, and then those that are appended.",
    description=(
        f"{ROWS_DESCRIPTION}\n"
        "\n"
        "Columns are those of the snapshot, by the identifiers of fields: one that was renamed "
        "since a file was written has its new name. Rows that position deletes or deletion "
        "vectors delete do not come. Not in Connect.\n"
        "\n"
        f"{METADATA_DESCRIPTION}"
    ),
    fields=(
        CATALOG_FIELD,
        NAMESPACE_FIELD,
        TABLE_FIELD,
        start_from_field("The identifier of a snapshot"),
        *TABLE_INPUT_FIELDS,
        STORAGE_FIELD,
        AUTO_REPLAY_NACKS_FIELD,
    ),
    check=catalog_problems,
    explains=explain_table_input,
    examples=(
        Example(
            "Follow a table whose catalog is a file",
            "input:\n"
            "  iceberg:\n"
            "    catalog: { url: sqlite:///catalog.db, warehouse: ./warehouse }\n"
            "    namespace: demo\n"
            "    table: windows\n",
        ),
        Example(
            "A REST catalog, some columns of some rows",
            "input:\n"
            "  iceberg:\n"
            "    catalog: { url: https://catalog.example.com, auth: { bearer: '${TOKEN}' } }\n"
            "    namespace: traffic\n"
            "    table: lights\n"
            "    columns: [light, cars]\n"
            "    where: [[light, in, [north, south]]]\n"
            "    poll_interval: 1m\n",
        ),
    ),
    begin={
        "catalog.url": "sqlite:///catalog.db",
        "catalog.warehouse": "./warehouse",
        "namespace": "demo",
        "table": "rows",
    },
    categories=("Tables",),
    runs="worker",
    delivery="exactly once: read again from the same snapshot, file and row",
    limits="no equality deletes; files in Parquet",
    requires=CATALOG_PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> TableSource:
    """Take the table; it is opened when the stream starts."""
    from streamer.connectors.iceberg.iceberg_reader import IcebergReader

    reader = IcebergReader(
        parsed[CATALOG][NAME],
        read_catalog(parsed),
        (*parsed[NAMESPACE].split("."), parsed[TABLE]),
        read_selection(parsed),
        parsed[ON_CHANGE],
        parsed.permissions,
        read_gcs_token(parsed[STORAGE], parsed.permissions),
    )
    return make_table_source(parsed, reader)
