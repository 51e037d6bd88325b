"""`iceberg`: it will "write data to Apache Iceberg tables", each micro-batch once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamer.bloblang import compile_interpolation, compile_mapping
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
from streamer.connectors.iceberg.partition_spec import parse_partition_spec, parse_sort_order
from streamer.connectors.iceberg.write_fields import (
    CASE_FIELD,
    CASE_SENSITIVE,
    COMMIT,
    COMMIT_FIELD,
    MANIFEST_MERGE,
    MAX_IN_FLIGHT_FIELD,
    MAX_SNAPSHOT_AGE,
    NEW_COLUMN_FIELDS,
    PARQUET_FIELD,
    SCHEMA_METADATA,
    TYPE_MAPPING,
    new_column_problems,
)
from streamer.connectors.tables.explain_output import explain_table_output
from streamer.connectors.tables.table_fields import (
    COLUMNS,
    COLUMNS_FIELD,
    ENABLED,
    ROWS_DESCRIPTION,
    SCHEMA_EVOLUTION,
    read_columns,
)
from streamer.core.execution import Execution
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

if TYPE_CHECKING:
    from streamer.connectors.tables.new_columns import ChooseType
    from streamer.connectors.tables.routed_tables import RoutedTableOutput
    from streamer.connectors.tables.table_output import TableOutput

ROW_OPERATION: Final = "row_operation"
IDENTIFIER_FIELDS: Final = "identifier_fields"
PARTITION_SPEC: Final = "partition_spec"
TABLE_LOCATION: Final = "table_location"
BRANCH: Final = "branch"
SORT_ORDER: Final = "sort_order"

_NS_PER_MS: Final = 1_000_000
_BATCHING_DESCRIPTION: Final = (
    "Combines messages into batches for the processors of this field. A commit has the rows of a "
    "whole micro-batch all the same: `spark.trigger_interval` says how long that is."
)
_INSERT: Final = "insert"
_KEYED: Final = ("upsert", "delete")


def _check_name(text: str) -> str | None:
    return None if text else "is empty"


def _check_partition_spec(text: str) -> str | None:
    try:
        parse_partition_spec(text)
    except ValueError as error:
        return str(error)
    return None


def _check_sort_order(text: str) -> str | None:
    try:
        parse_sort_order(text)
    except ValueError as error:
        return str(error)
    return None


def _key_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    operation, keys = parsed[ROW_OPERATION], parsed[IDENTIFIER_FIELDS]
    if operation in _KEYED and not keys:
        yield (
            IDENTIFIER_FIELDS,
            f"is empty; {operation} needs the columns by which a row is found",
        )
    if keys and operation == _INSERT:
        yield IDENTIFIER_FIELDS, f"has no effect without {ROW_OPERATION}: {' or '.join(_KEYED)}"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "iceberg",
    "Writes rows to a table of Apache Iceberg.",
    description=(
        f"{ROWS_DESCRIPTION}\n"
        "\n"
        "The commit is one transaction of the catalog. It sets a property of the table, "
        "`streamer.committed.…`, to the number of the micro-batch, and the summary of the snapshot "
        "has it too. A message that was rejected and is sent again may come twice, when the "
        "program ends at that moment; `upsert` prevents it.\n"
        "\n"
        "Messages may name the table. A micro-batch then is a commit to each table that it names, "
        "and each table has its rows once. At most 64 tables stay open.\n"
        "\n"
        "An upsert deletes the rows of its keys, and appends the new ones, in one transaction; "
        "files that have such a row are written anew, as Connect's `copy-on-write` does. It suits "
        "the windows of some thousand keys. "
        "Compact the table and expire its snapshots with its own tools."
    ),
    fields=(
        CATALOG_FIELD,
        replace(NAMESPACE_FIELD, interpolated=True, check=_check_name),
        replace(
            TABLE_FIELD,
            interpolated=True,
            check=_check_name,
            examples=("windows", "events_${! @kafka_topic }"),
        ),
        STORAGE_FIELD,
        Field(
            ROW_OPERATION,
            "string",
            "`insert` adds a row for each message. `upsert` replaces the row with the same "
            f"`{IDENTIFIER_FIELDS}`: a window that is emitted again corrects its row. `delete` "
            "removes that row; it needs nothing else of the message. Each message may have its "
            "own operation. Of `upsert` and `delete`, the last one for a key in a micro-batch "
            "counts. An `insert` replaces nothing.",
            default=_INSERT,
            options=(_INSERT, *_KEYED),
            interpolated=True,
            examples=(_INSERT, '${! if this.op == "d" { "delete" } else { "upsert" } }'),
        ),
        Field(
            IDENTIFIER_FIELDS,
            "string",
            "The columns by which `upsert` and `delete` find a row; none is null.",
            default=[],
            shape="array",
            examples=(["light", "window_end"],),
        ),
        COLUMNS_FIELD,
        Field(
            BRANCH,
            "string",
            "The branch of the table that gets the rows. Readers of `main` do not see them until "
            "its owner publishes the branch, such as by Spark's `fast_forward`. A branch that is "
            "not there begins with the table as it is. Further columns are those of all branches. "
            "Not in Connect.",
            default="main",
            advanced=True,
            check=_check_name,
            examples=("audit",),
        ),
        Field(
            SCHEMA_EVOLUTION,
            "object",
            "Changes of the table by messages.",
            default={},
            children=(
                Field(
                    ENABLED,
                    "bool",
                    "Whether a table that is not there is made, and further fields of messages "
                    "become columns. Without it a message with another field is rejected. In "
                    "Connect it is off unless the config says so.",
                    default=True,
                ),
                Field(
                    PARTITION_SPEC,
                    "string",
                    "How a new table is partitioned: columns, or `year`, `month`, `day`, `hour`, "
                    "`bucket(n, …)` and `truncate(n, …)` of them.",
                    default="()",
                    check=_check_partition_spec,
                    examples=("(day(window_end), light)",),
                ),
                Field(
                    SORT_ORDER,
                    "string",
                    "The sort order of a new table: terms as those of `partition_spec`, each with "
                    "`asc` or `desc`, and `nulls first` or `nulls last`. The rows of a file are in "
                    "the order of its table, whoever made it. Not in Connect.",
                    default="()",
                    advanced=True,
                    check=_check_sort_order,
                    examples=("(light, window_end desc)",),
                ),
                Field(
                    TABLE_LOCATION,
                    "string",
                    "Where a new table lies, for catalogs that do not say it. Where messages name "
                    "the table, it is the directory of the namespaces.",
                    default="",
                    advanced=True,
                ),
                *NEW_COLUMN_FIELDS,
            ),
        ),
        CASE_FIELD,
        COMMIT_FIELD,
        PARQUET_FIELD,
        replace(BATCHING_FIELD, description=_BATCHING_DESCRIPTION),
        MAX_IN_FLIGHT_FIELD,
    ),
    check=join_checks(
        catalog_problems,
        _key_problems,
        batching_problems,
        lambda parsed: new_column_problems(parsed[SCHEMA_EVOLUTION], SCHEMA_EVOLUTION),
    ),
    explains=lambda parsed: explain_table_output(
        parsed[COLUMNS],
        parsed[SCHEMA_EVOLUTION][PARTITION_SPEC].strip()[1:-1],
        parsed[IDENTIFIER_FIELDS],
        operation=parsed[ROW_OPERATION],
        is_open=parsed[SCHEMA_EVOLUTION][ENABLED],
    ),
    examples=(
        Example(
            "Windows into a table, with a catalog in a file",
            "output:\n"
            "  iceberg:\n"
            "    catalog: { url: sqlite:///catalog.db, warehouse: ./warehouse }\n"
            "    namespace: demo\n"
            "    table: windows\n",
        ),
        Example(
            "A REST catalog, and files in S3",
            "output:\n"
            "  iceberg:\n"
            "    catalog:\n"
            "      url: https://catalog.example.com\n"
            "      warehouse: lake\n"
            "      auth: { bearer: '${TOKEN}' }\n"
            "    namespace: traffic\n"
            "    table: lights\n"
            "    storage:\n"
            "      aws_s3: { region: eu-central-1 }\n"
            "    schema_evolution:\n"
            "      partition_spec: (day(window_end))\n",
        ),
    ),
    begin={
        "catalog.url": "sqlite:///catalog.db",
        "catalog.warehouse": "./warehouse",
        "namespace": "demo",
        "table": "rows",
    },
    categories=("Tables",),
    runs="driver",
    delivery="exactly once",
    requires=CATALOG_PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> TableOutput | RoutedTableOutput:
    """Take the table, or the names of tables; nothing is opened yet."""
    from streamer.connectors.iceberg.iceberg_table import (
        CatalogConnection,
        IcebergClient,
        WriteSettings,
    )
    from streamer.connectors.iceberg.iceberg_target import IcebergTarget
    from streamer.connectors.tables.routed_tables import OpenTables, RoutedTableOutput
    from streamer.connectors.tables.row_operations import RowOperations
    from streamer.connectors.tables.table_output import ColumnCache, NewColumns, TableOutput

    evolution, commit = parsed[SCHEMA_EVOLUTION], parsed[COMMIT]
    token = read_gcs_token(parsed[STORAGE], parsed.permissions)
    connection = CatalogConnection(parsed[CATALOG][NAME], read_catalog(parsed), token)
    namespace = compile_interpolation(parsed[NAMESPACE])
    table = compile_interpolation(parsed[TABLE])
    is_routed = namespace.static is None or table.static is None
    policy = output_policy(parsed, context)

    def open_table(namespace: str, table: str, cache: ColumnCache) -> TableOutput:
        location = evolution[TABLE_LOCATION]
        if location and is_routed:
            location = f"{location.rstrip('/')}/{namespace}/{table}"
        settings = WriteSettings(
            parse_partition_spec(evolution[PARTITION_SPEC]),
            parse_sort_order(evolution[SORT_ORDER]),
            location,
            parsed[IDENTIFIER_FIELDS],
            parsed[BRANCH],
            commit[MANIFEST_MERGE],
            commit[MAX_SNAPSHOT_AGE] // _NS_PER_MS,
        )
        client = IcebergClient(connection, namespace, table, settings)
        return TableOutput(
            client,
            read_columns(parsed[COLUMNS]),
            cache,
            is_open=evolution[ENABLED],
            keys=parsed[IDENTIFIER_FIELDS],
            operations=RowOperations(compile_interpolation(parsed[ROW_OPERATION])),
            new_columns=NewColumns(
                not parsed[CASE_SENSITIVE],
                evolution[SCHEMA_METADATA],
                _read_choice(evolution[TYPE_MAPPING], namespace, table),
                policy,
            ),
        )

    if is_routed:
        target = IcebergTarget(connection, namespace, table, open_table)
        caches = context.worker_resource("caches", OpenTables[ColumnCache])
        return RoutedTableOutput(target, caches, policy)
    cache = context.worker_resource("columns", ColumnCache)
    return open_table(parsed[NAMESPACE], parsed[TABLE], cache)


def _read_choice(
    text: str | None, namespace: str, table: str
) -> Callable[[ChooseType | None], ChooseType] | None:
    """Return what makes the choice of types by a mapping; None without one."""
    from streamer.connectors.tables.new_columns import choose_by_mapping

    if not text:
        return None
    mapping, ex = compile_mapping(text), Execution(time.time_ns)
    names = {"namespace": namespace, "table": table}
    return lambda before: choose_by_mapping(
        lambda message: mapping.query([message], 0, ex), names, before
    )
