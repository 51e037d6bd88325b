"""The publication, the slot and the tables of a PostgreSQL that is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.cdc.pgoutput import parse_lsn
from streamer.connectors.cdc.postgres_connection import (
    PostgresConnection,
    PostgresError,
    quote_name,
    quote_text,
)
from streamer.connectors.cdc.postgres_values import load_value
from streamer.connectors.cdc.snapshot import Page

PLUGIN: Final = "pgoutput"
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_QUOTED_NAME: Final = re.compile(r'"(?:[^"\0]|"")+"')
_ROOTS_SINCE: Final = 130_000


class Table(NamedTuple):
    """A table, by its schema and its name, as the server has them."""

    schema: str
    name: str

    @property
    def sql(self) -> str:
        """The table as SQL has it."""
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"


class Slot(NamedTuple):
    """A slot that there is.

    Attributes:
        confirmed: the LSN behind what its readers have.
    """

    confirmed: int


def name_problem(text: str) -> str | None:
    """Return what is wrong with the name of a schema or a table, or None."""
    if _PLAIN_NAME.fullmatch(text) or _QUOTED_NAME.fullmatch(text):
        return None
    return (
        f"is {text!r}; expected letters, digits and underscores, or any name in double quotes, "
        "such as '\"Orders 2024\"'"
    )


def parse_name(text: str) -> str:
    """Return a name as the server has it: in lower case, unless it is quoted."""
    return text[1:-1].replace('""', '"') if text.startswith('"') else text.lower()


def publication_name(slot: str) -> str:
    """Return the name of the publication for a slot, which is Redpanda Connect's."""
    return f"pglog_stream_{slot}"


def find_slot(connection: PostgresConnection, name: str) -> Slot | None:
    """Return a slot; None where there is none of that name.

    Raises:
        PostgresError: it is of no use: another plugin's, another database's, or invalidated.
    """
    fields = "plugin, database, confirmed_flush_lsn, coalesce(wal_status, ''), current_database()"
    rows = connection.run(
        f"SELECT {fields} FROM pg_replication_slots WHERE slot_name = $1", [name.encode()]
    ).texts()
    if not rows:
        return None
    plugin, database, confirmed, status, current = rows[0]
    if plugin != PLUGIN or database != current:
        raise PostgresError(
            f"the slot {name} is of the plugin {plugin or 'none'} and the database "
            f"{database or 'none'}; expected {PLUGIN} and {current}: choose another slot_name"
        )
    if status == "lost":
        raise PostgresError(
            f"the server has given up the slot {name}, and changes with it, since it was behind by "
            "more than max_slot_wal_keep_size; drop it by SELECT "
            f"pg_drop_replication_slot({quote_text(name)}), and begin with a new checkpoint"
        )
    return Slot(parse_lsn(confirmed))


def create_slot(
    replication: PostgresConnection, name: str, *, is_temporary: bool
) -> tuple[int, str]:
    """Create a slot.

    Returns:
        The LSN at which its changes begin, and the name of the snapshot of all before, which is
        there until the next command.

    Raises:
        PostgresError: the server refuses.
    """
    temporary = "TEMPORARY " if is_temporary else ""
    [[_, start, snapshot, _]] = replication.run(
        f"CREATE_REPLICATION_SLOT {quote_name(name)} {temporary}LOGICAL {PLUGIN} EXPORT_SNAPSHOT"
    ).texts()
    return parse_lsn(start), snapshot


def ensure_publication(connection: PostgresConnection, name: str, tables: Sequence[Table]) -> None:
    """Have a publication of these tables, or of all when there are none.

    Raises:
        PostgresError: a table is missing, or rights are.
    """
    rows = connection.run(
        "SELECT puballtables FROM pg_publication WHERE pubname = $1", [name.encode()]
    ).texts()
    if not rows:
        what = f"TABLE {', '.join(table.sql for table in tables)}" if tables else "ALL TABLES"
        # A partitioned table is read as the one table that it is.
        roots = connection.server_version >= _ROOTS_SINCE
        more = " WITH (publish_via_partition_root = true)" if roots else ""
        connection.run(f"CREATE PUBLICATION {quote_name(name)} FOR {what}{more}")
        return
    if not tables or rows[0][0] == "t":
        return
    rows = connection.run(
        "SELECT n.nspname, c.relname FROM pg_publication p "
        "JOIN pg_publication_rel r ON r.prpubid = p.oid JOIN pg_class c ON c.oid = r.prrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = $1",
        [name.encode()],
    ).texts()
    there = {Table(*row) for row in rows}
    for verb, names in (
        ("ADD", [one for one in tables if one not in there]),
        ("DROP", sorted(there - set(tables))),
    ):
        if names:
            listed = ", ".join(one.sql for one in names)
            connection.run(f"ALTER PUBLICATION {quote_name(name)} {verb} TABLE {listed}")


def find_primary_key(connection: PostgresConnection, table: Table) -> list[str]:
    """Return the columns of a table's primary key, in its order.

    Raises:
        PostgresError: there is no such table, or it has none.
    """
    rows = connection.run(
        "SELECT a.attname FROM pg_index i "
        "CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum "
        "WHERE i.indrelid = $1::regclass AND i.indisprimary ORDER BY k.place",
        [table.sql.encode()],
    ).texts()
    if not rows:
        raise PostgresError(
            f"the table {table.schema}.{table.name} has no primary key, by which stream_snapshot "
            "reads; add one, or set stream_snapshot to false"
        )
    return [name for [name] in rows]


class PostgresTable:
    """A table of which a snapshot is read."""

    def __init__(self, connection: PostgresConnection, table: Table, rows: int) -> None:
        """Find the primary key of a table.

        Args:
            connection: in a transaction that sees the snapshot.
            table: the table.
            rows: of a page.

        Raises:
            PostgresError: there is no such table, or it has no primary key.
        """
        self._connection = connection
        self._table = table
        self._limit = rows
        self._keys = find_primary_key(connection, table)

    @property
    def place(self) -> str:
        """The identity of the table in the database."""
        return self._table.sql

    @property
    def name(self) -> str:
        """Its name."""
        return self._table.name

    def read_page(self, key: Any) -> Page:
        """Return the rows behind a key, or the first ones where it is None."""
        keys = ", ".join(map(quote_name, self._keys))
        places = ", ".join(f"${n}" for n in range(1, len(self._keys) + 1))
        where = "" if key is None else f" WHERE ({keys}) > ({places})"
        result = self._connection.run(
            f"SELECT * FROM {self.place}{where} ORDER BY {keys} LIMIT {self._limit}",
            [text.encode() for text in key or ()],
        )
        documents = [
            {
                name: None if raw is None else load_value(kind, raw)
                for (name, kind), raw in zip(result.columns, row, strict=True)
            }
            for row in result.rows
        ]
        if len(documents) < self._limit:
            return Page(documents, None)
        last, columns = result.rows[-1], [name for name, _ in result.columns]
        return Page(documents, [(last[columns.index(name)] or b"").decode() for name in self._keys])
