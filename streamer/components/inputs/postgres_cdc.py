"""`postgres_cdc`: "streams changes from a PostgreSQL database using logical replication".

Each change is spooled once, together with its place in the server's log, and the server is told of
a place when it is on the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.cdc.cdc_fields import (
    CDC_FIELDS,
    STREAM_SNAPSHOT,
    TABLES,
    CdcInput,
    cdc_problems,
    row_count_problem,
    with_batching,
)
from streamer.connectors.cdc.postgres_connection import (
    PostgresConnection,
    PostgresError,
    connection_settings,
    postgres_tls_problems,
)
from streamer.connectors.cdc.postgres_session import PostgresOptions, PostgresSession
from streamer.connectors.cdc.postgres_tables import (
    Table,
    find_primary_key,
    find_slot,
    name_problem,
    parse_name,
)
from streamer.connectors.sql.dsn import dsn_problem
from streamer.connectors.tls import TLS, TLS_FIELD, tls_problems
from streamer.core.durations import SECOND
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
    duration_field,
)

DSN: Final = "dsn"
SCHEMA: Final = "schema"
SLOT_NAME: Final = "slot_name"
TEMPORARY_SLOT: Final = "temporary_slot"
SNAPSHOT_BATCH_SIZE: Final = "snapshot_batch_size"
STANDBY_TIMEOUT: Final = "pg_standby_timeout"
TRANSACTION_MARKERS: Final = "include_transaction_markers"
UNCHANGED: Final = "unchanged_toast_value"

_MIN_STATUS_S: Final = 0.1


def _slot_problem(name: str) -> str | None:
    # As PostgreSQL has it.
    if re.fullmatch(r"[a-z0-9_]{1,63}", name):
        return None
    return f"is {name!r}; expected 1 to 63 lower-case letters, digits and underscores"


def _tables_problem(names: Any) -> str | None:
    return next((f"has one that {text}" for text in map(name_problem, names) if text), None)


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from tls_problems(parsed)
    yield from postgres_tls_problems(parsed)
    yield from cdc_problems(parsed)


SPEC: Final = Spec(
    Kind.INPUT,
    "postgres_cdc",
    "Streams changes of tables of PostgreSQL by logical replication.",
    description=(
        "A message has a row as an object, and the metadata `table`, `operation` (`read` for a "
        "row of the snapshot, `insert`, `update`, `delete`, `truncate`), `lsn` (the place in the "
        "server's log), `commit_ts_ms` and `before` (the row before; by the default "
        "`REPLICA IDENTITY` only the key of a row that is deleted, or whose key changes). A "
        "truncation and a marker of a transaction have the message `null`.\n\n"
        "The first start makes the publication `pglog_stream_<slot_name>` and the slot. The "
        "server keeps its log from there on, until the changes are on the driver's disk. A later "
        "start goes on at the place that is in the checkpoint. If the slot is gone or ahead of "
        "the checkpoint, the input waits, and its error says which changes are missing. Where "
        "the slot is there at the first start, changes are read from it without a snapshot.\n\n"
        "A snapshot that is interrupted goes on behind the last key that was read. The rows "
        "behind it may have changes already that come again as changes.\n\n"
        "The server needs `wal_level = logical`, and the user the right `REPLICATION`. To "
        "create the publication, the user must own the tables. Delete the slot "
        "when a stream is deleted, since the server keeps its log for it: "
        "`SELECT pg_drop_replication_slot('<slot_name>')`, then "
        "`DROP PUBLICATION pglog_stream_<slot_name>`.\n\n"
        "Numbers, booleans, JSON and arrays are values, times are RFC 3339 in UTC, and `bytea` is "
        "base64. All other types are texts as PostgreSQL writes them. A changed table has its new "
        "columns from its next change on. A table that is added to `tables` later is read "
        "without a snapshot."
    ),
    fields=(
        Field(
            DSN,
            "string",
            "URL of the database.",
            access=Access.DATABASE_URL,
            secret=True,
            check=dsn_problem,
            examples=("postgres://user:password@localhost:5432/name?sslmode=disable",),
        ),
        Field(
            TRANSACTION_MARKERS,
            "bool",
            "True for messages `null` with the operations `begin` and `commit`.",
            default=False,
        ),
        Field(
            STREAM_SNAPSHOT,
            "bool",
            "True to read the rows that are there first. Their tables need a primary key.",
            default=False,
        ),
        Field(
            "snapshot_memory_safety_factor",
            "float",
            "Has no effect.",
            default=1,
            deprecated=True,
        ),
        Field(
            SNAPSHOT_BATCH_SIZE,
            "int",
            "Rows of a snapshot that are read at once.",
            default=1000,
            check=row_count_problem,
        ),
        Field(
            SCHEMA,
            "string",
            "The schema of the tables; in double quotes where it has capital letters.",
            access=Access.REMOTE,
            check=name_problem,
            examples=("public",),
        ),
        Field(
            TABLES,
            "string",
            "The tables; in double quotes where a name has capital letters. If empty, all "
            "tables of all schemas are read, without a snapshot.",
            shape="array",
            check=_tables_problem,
            examples=(["orders", '"Customers"'],),
        ),
        Field(
            TEMPORARY_SLOT,
            "bool",
            "True for a slot that goes with its connection. Changes between two connections are "
            "lost then, and each connection begins with a snapshot where there is one.",
            default=False,
        ),
        Field(
            SLOT_NAME,
            "string",
            "The name of the slot. Two streams must not share one.",
            access=Access.NONE,
            check=_slot_problem,
            examples=("streamer_orders",),
        ),
        duration_field(
            STANDBY_TIMEOUT,
            "Time between two reports to the server of what is on the disk.",
            default="10s",
        ),
        duration_field(
            "pg_wal_monitor_interval",
            "Has no effect; the view `pg_replication_slots` has how far a slot is behind.",
            default="3s",
        ),
        Field(
            UNCHANGED,
            "unknown",
            "The value of a large column that an update leaves as it was, which PostgreSQL does "
            "not send without `REPLICA IDENTITY FULL`.",
            default=None,
            optional=True,
            advanced=True,
            examples=("__unchanged__",),
        ),
        duration_field(
            "heartbeat_interval",
            "Has no effect: a log without changes of these tables is confirmed every 16 MiB.",
            default="1h",
            advanced=True,
        ),
        TLS_FIELD,
        *CDC_FIELDS,
    ),
    check=_problems,
    begin={
        "dsn": "postgres://user:password@localhost:5432/name",
        "schema": "public",
        "tables": ["orders"],
        "slot_name": "streamer_orders",
    },
    examples=(
        Example(
            "Rows that are there, and their changes",
            "input:\n"
            "  postgres_cdc:\n"
            "    dsn: postgres://user:${PASSWORD}@localhost:5432/shop\n"
            "    schema: public\n"
            "    tables: [orders, customers]\n"
            "    stream_snapshot: true\n"
            "    slot_name: streamer_shop\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = this\n"
            "        root.operation = @operation\n",
        ),
    ),
    categories=("Services",),
    delivery=(
        "changes exactly once onto the driver's disk, by their place in the server's log; rows of "
        "an interrupted snapshot and the changes since it began both come"
    ),
    requires=(Package("psycopg"),),
)


def build(parsed: ParsedFields, context: BuildContext) -> Any:
    """Take the fields; it is connected once it is opened."""
    labels = ComponentRef(context.component).fields
    schema = parse_name(parsed[SCHEMA])
    tables = [Table(schema, parse_name(name)) for name in dict.fromkeys(parsed[TABLES])]

    def make_options() -> PostgresOptions:
        return PostgresOptions(
            settings=connection_settings(parsed[DSN], parsed[TLS]),
            slot=parsed[SLOT_NAME],
            is_temporary=parsed[TEMPORARY_SLOT],
            tables=tables,
            has_snapshot=parsed[STREAM_SNAPSHOT],
            snapshot_rows=parsed[SNAPSHOT_BATCH_SIZE],
            status_s=max((parsed[STANDBY_TIMEOUT] or 0) / SECOND, _MIN_STATUS_S),
            has_markers=parsed[TRANSACTION_MARKERS],
            unchanged=parsed[UNCHANGED],
        )

    source = CdcInput(
        "postgres_cdc",
        labels,
        lambda session: PostgresSession(make_options(), session).run(),
        lambda: _test(make_options()),
    )
    return with_batching(source, parsed, context)


def _test(options: PostgresOptions) -> str:
    """Return whether the slot is there.

    Raises:
        PostgresError: the server does not answer, or its changes cannot be read.
    """
    connection = PostgresConnection(options.settings)
    try:
        [[level]] = connection.run("SHOW wal_level").texts()
        if level != "logical":
            raise PostgresError(
                f"the server has wal_level {level}; expected logical: set it in postgresql.conf "
                "and start the server again"
            )
        for table in options.tables:
            if options.has_snapshot:
                find_primary_key(connection, table)
            else:
                connection.run("SELECT $1::regclass", [table.sql.encode()])
        slot = find_slot(connection, options.slot)
    finally:
        connection.close()
    there = "is there" if slot is not None else "will be made"
    return f"the server answers; the slot {options.slot} {there}"
