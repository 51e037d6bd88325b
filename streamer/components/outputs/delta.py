"""`delta`: appends rows to a Delta table, or merges them by key, each micro-batch once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamer.connectors.delta.delta_fields import (
    PATH,
    PATH_FIELD,
    STORAGE_OPTIONS,
    STORAGE_OPTIONS_FIELD,
)
from streamer.connectors.tables.table_fields import (
    COLUMNS,
    COLUMNS_FIELD,
    ENABLED,
    KEY,
    KEY_FIELD,
    MODE_FIELD,
    PARTITION_BY,
    PARTITION_BY_FIELD,
    ROWS_DESCRIPTION,
    SCHEMA_EVOLUTION,
    SCHEMA_EVOLUTION_FIELD,
    read_columns,
    table_problems,
)
from streamer.core.permissions import current_permissions
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Kind,
    Package,
    ParsedFields,
    Spec,
)

if TYPE_CHECKING:
    from streamer.connectors.tables.table_output import TableOutput

SPEC: Final = Spec(
    Kind.OUTPUT,
    "delta",
    "Writes rows to a Delta table.",
    description=(
        f"{ROWS_DESCRIPTION}\n"
        "\n"
        "The commit has a transaction identifier of Delta's protocol: the name of the stream's "
        "checkpoint, and the number of the micro-batch. A message that was rejected and is sent "
        "again may come twice, when the program ends at that moment; `upsert` prevents it.\n"
        "\n"
        "Compact and clean the table with its own tools (`OPTIMIZE`, `VACUUM`). Not in Connect."
    ),
    fields=(
        PATH_FIELD,
        MODE_FIELD,
        KEY_FIELD,
        COLUMNS_FIELD,
        PARTITION_BY_FIELD,
        SCHEMA_EVOLUTION_FIELD,
        STORAGE_OPTIONS_FIELD,
    ),
    check=table_problems,
    examples=(
        Example(
            "Windows into a Delta table",
            "output:\n"
            "  delta:\n"
            "    path: ./table\n"
            "    columns: { light: string, total: double, window_end: timestamp }\n",
        ),
        Example(
            "Corrected windows replace their row",
            "output:\n"
            "  delta:\n"
            "    path: ./table\n"
            "    mode: upsert\n"
            "    key: [light, window_end]\n",
        ),
    ),
    categories=("Tables",),
    runs="driver",
    delivery="exactly once",
    requires=(Package("deltalake"),),
)


def build(parsed: ParsedFields, context: BuildContext) -> TableOutput:
    """Take the table; nothing is opened yet."""
    from streamer.connectors.delta.delta_table import DeltaClient
    from streamer.connectors.tables.table_output import ColumnCache, TableOutput

    path = current_permissions().file(parsed[PATH])
    client = DeltaClient(
        path, parsed[STORAGE_OPTIONS], partition_by=parsed[PARTITION_BY], keys=parsed[KEY]
    )
    return TableOutput(
        client,
        read_columns(parsed[COLUMNS]),
        context.worker_resource("columns", ColumnCache),
        is_open=parsed[SCHEMA_EVOLUTION][ENABLED],
        keys=parsed[KEY],
    )
