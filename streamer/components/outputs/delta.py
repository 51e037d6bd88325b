"""`delta`: appends rows to a Delta table, or merges them by key, each micro-batch once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.delta.delta_fields import (
    PATH,
    PATH_FIELD,
    STORAGE_OPTIONS,
    STORAGE_OPTIONS_FIELD,
)
from streamer.connectors.tables.explain_output import explain_table_output
from streamer.connectors.tables.table_fields import (
    COLUMNS,
    COLUMNS_FIELD,
    ENABLED,
    KEY,
    KEY_FIELD,
    MODE,
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
    from streamer.connectors.tables.routed_tables import RoutedTableOutput
    from streamer.connectors.tables.table_output import TableOutput


def _check_path(text: str) -> str | None:
    if not text:
        return "is empty; expected a directory or a URL"
    fixed, mark, _ = text.partition("${!")
    if mark and not fixed.rpartition("/")[0]:
        return "begins with a part of messages; expected a directory before it, such as ./tables/"
    return None


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
        "Messages may name the table. A micro-batch then is a commit to each table that it names, "
        "and each table has its rows once. At most 64 tables stay open.\n"
        "\n"
        "Compact and clean the table with its own tools (`OPTIMIZE`, `VACUUM`). Not in Connect."
    ),
    fields=(
        replace(
            PATH_FIELD,
            interpolated=True,
            check=_check_path,
            examples=("./table", "s3://lake/lights", "./tables/${! @kafka_topic }"),
        ),
        MODE_FIELD,
        KEY_FIELD,
        COLUMNS_FIELD,
        PARTITION_BY_FIELD,
        SCHEMA_EVOLUTION_FIELD,
        STORAGE_OPTIONS_FIELD,
    ),
    check=table_problems,
    explains=lambda parsed: explain_table_output(
        parsed[COLUMNS],
        ", ".join(parsed[PARTITION_BY]),
        parsed[KEY],
        operation=parsed[MODE],
        is_open=parsed[SCHEMA_EVOLUTION][ENABLED],
    ),
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


def build(parsed: ParsedFields, context: BuildContext) -> TableOutput | RoutedTableOutput:
    """Take the table, or the paths of tables; nothing is opened yet."""
    from streamer.connectors.delta.delta_table import DeltaClient
    from streamer.connectors.delta.delta_target import DeltaTarget
    from streamer.connectors.tables.routed_tables import OpenTables, RoutedTableOutput
    from streamer.connectors.tables.row_operations import RowOperations
    from streamer.connectors.tables.table_output import ColumnCache, TableOutput

    permissions = current_permissions()
    path = compile_interpolation(parsed[PATH])

    def open_table(path: str, cache: ColumnCache) -> TableOutput:
        client = DeltaClient(
            permissions.file(path),
            parsed[STORAGE_OPTIONS],
            partition_by=parsed[PARTITION_BY],
            keys=parsed[KEY],
        )
        return TableOutput(
            client,
            read_columns(parsed[COLUMNS]),
            cache,
            is_open=parsed[SCHEMA_EVOLUTION][ENABLED],
            keys=parsed[KEY],
            operations=RowOperations(compile_interpolation(parsed[MODE])),
        )

    if path.static is None:
        caches = context.worker_resource("caches", OpenTables[ColumnCache])
        return RoutedTableOutput(DeltaTarget(path, open_table), caches)
    return open_table(path.static, context.worker_resource("columns", ColumnCache))
