"""`mysql_cdc`: "streams changes from a MySQL database", by its binary log.

Each change is spooled once, together with its place in the log.
"""

from __future__ import annotations

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
from streamer.connectors.cdc.mysql_session import MysqlOptions, MysqlSession
from streamer.connectors.cdc.mysql_tables import MysqlConnection, MysqlTable, mysql_settings
from streamer.connectors.sql.dsn import dsn_problem
from streamer.connectors.tls import TLS_FIELD, tls_problems
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
)

DSN: Final = "dsn"
SNAPSHOT_ROWS: Final = "snapshot_max_batch_size"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from tls_problems(parsed)
    yield from cdc_problems(parsed)
    if not parsed[TABLES]:
        yield TABLES, "is empty; expected one table at least"


SPEC: Final = Spec(
    Kind.INPUT,
    "mysql_cdc",
    "Streams changes of tables of MySQL or MariaDB by the binary log.",
    description=(
        "A message has a row as an object: after an insert or update, before a delete. The "
        "metadata are `table`, `operation` (`read` for a row of the snapshot, `insert`, `update`, "
        "`delete`) and `binlog_position`. `TRUNCATE` makes no messages.\n\n"
        "The position (file and offset of the binary log) is in the checkpoint, and a later start "
        "goes on there. If the server has deleted that part of its log, the input waits, and its "
        "error says which changes are missing. Keep binary logs for longer than a stream "
        "may rest (`binlog_expire_logs_seconds`). Another server of a cluster has other positions: "
        "begin with a new checkpoint there.\n\n"
        "For a snapshot, the tables are locked for a moment, in which the position is taken. A "
        "snapshot that is interrupted goes on behind the last key that was read. The rows "
        "behind it may have changes already that come again as changes.\n\n"
        "The server needs `binlog_format = ROW`, `binlog_row_image = FULL`, and, unlike for "
        "Redpanda Connect, `binlog_row_metadata = FULL`, so that a row has the names that its "
        "columns had when it changed. The user needs the rights `SELECT`, `REPLICATION SLAVE` and "
        "`REPLICATION CLIENT` (in MariaDB `BINLOG MONITOR`), for a snapshot also `RELOAD` and "
        "`LOCK TABLES`. Compressed transactions are refused. Nothing is left on the server "
        "when a stream is deleted."
    ),
    fields=(
        Field(
            "flavor",
            "string",
            "Has no effect: the server says which of the two it is.",
            default="mysql",
            options=("mariadb", "mysql"),
        ),
        Field(
            DSN,
            "string",
            "URL of the database: `user:password@tcp(host:port)/name`.",
            access=Access.DATABASE_URL,
            secret=True,
            check=dsn_problem,
            examples=("user:password@tcp(localhost:3306)/shop",),
        ),
        Field(TABLES, "string", "The tables.", shape="array", examples=(["orders"],)),
        Field(
            "checkpoint_cache",
            "string",
            "Has no effect: the position is in the stream's checkpoint.",
            optional=True,
            refers=Kind.CACHE,
        ),
        Field(
            "checkpoint_key",
            "string",
            "Has no effect.",
            default="mysql_binlog_position",
        ),
        Field(
            SNAPSHOT_ROWS,
            "int",
            "Rows of a snapshot that are read at once.",
            default=1000,
            check=row_count_problem,
        ),
        Field(
            "max_reconnect_attempts",
            "int",
            "Has no effect: a lost connection is made again for as long as the stream runs.",
            default=10,
            advanced=True,
        ),
        Field(
            STREAM_SNAPSHOT,
            "bool",
            "True to read the rows that are there first. Their tables need a primary key. "
            "Otherwise the first start begins where the binary log ends.",
        ),
        TLS_FIELD,
        *CDC_FIELDS,
    ),
    check=_problems,
    begin={
        "dsn": "user:password@tcp(localhost:3306)/shop",
        "tables": ["orders"],
        "stream_snapshot": True,
    },
    examples=(
        Example(
            "Rows that are there, and their changes",
            "input:\n"
            "  mysql_cdc:\n"
            "    dsn: user:${PASSWORD}@tcp(localhost:3306)/shop\n"
            "    tables: [orders, customers]\n"
            "    stream_snapshot: true\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = this\n"
            "        root.operation = @operation\n",
        ),
    ),
    categories=("Services",),
    delivery=(
        "changes exactly once onto the driver's disk, by their place in the binary log; rows of "
        "an interrupted snapshot and the changes since it began both come"
    ),
    limits="tested on MariaDB 10.11",
    requires=(Package("pymysql"), Package("pymysqlreplication")),
)


def build(parsed: ParsedFields, context: BuildContext) -> Any:
    """Take the fields; it is connected once it is opened."""
    labels = ComponentRef(context.component).fields

    def make_options() -> MysqlOptions:
        return MysqlOptions(
            settings=mysql_settings(parsed),
            tables=list(dict.fromkeys(parsed[TABLES])),
            has_snapshot=parsed[STREAM_SNAPSHOT],
            snapshot_rows=parsed[SNAPSHOT_ROWS],
        )

    source = CdcInput(
        "mysql_cdc",
        labels,
        lambda session: MysqlSession(make_options(), session).run(),
        lambda: _test(make_options()),
    )
    return with_batching(source, parsed, context)


def _test(options: MysqlOptions) -> str:
    """Return where the binary log ends.

    Raises:
        MysqlError: the server does not answer, or its changes cannot be read.
    """
    connection = MysqlConnection(options.settings)
    try:
        connection.check_settings()
        for name in options.tables:
            table = MysqlTable(connection, name, options.snapshot_rows)
            if options.has_snapshot:
                table.check_key()
        file, offset = connection.find_position()
    finally:
        connection.close()
    return f"the server answers; its binary log ends at {file}:{offset}"
