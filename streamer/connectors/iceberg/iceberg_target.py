"""Iceberg tables whose names come from messages, all of them in one catalog."""

from __future__ import annotations

from collections.abc import Callable

from streamer.bloblang import Interpolation
from streamer.connectors.iceberg.iceberg_table import CatalogConnection
from streamer.connectors.tables.message_names import check_name, interpolate_text
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.execution import Execution
from streamer.core.message import Message

_MARK = "/"


class IcebergTarget:
    """The tables of an output; see `TableTarget`."""

    def __init__(
        self,
        connection: CatalogConnection,
        namespace: Interpolation,
        table: Interpolation,
        open_table: Callable[[str, str, ColumnCache], TableOutput],
    ) -> None:
        """Take the names.

        Args:
            connection: the catalog.
            namespace: of a message's table, with dots between its levels.
            table: its name.
            open_table: returns the output of a namespace and a name.
        """
        self._connection = connection
        self._namespace, self._table = namespace, table
        self._open_table = open_table

    def describe(self) -> str:
        """Return where they are."""
        return f"the Iceberg tables {self._namespace.text}.{self._table.text}"

    def place_of(self, message: Message, ex: Execution) -> str:
        """Return the namespace and the name of a message's table."""
        namespace = interpolate_text(self._namespace, "namespace", message, ex)
        for level in namespace.split("."):
            check_name(level, "namespace")
        table = check_name(interpolate_text(self._table, "table", message, ex), "table")
        return f"{namespace}{_MARK}{table}"

    def open(self, place: str, cache: ColumnCache) -> TableOutput:
        """Return the output of one table."""
        namespace, _, table = place.partition(_MARK)
        return self._open_table(namespace, table, cache)

    def check(self) -> str:
        """Check that the catalog answers."""
        count = self._connection.count_namespaces()
        return f"the catalog answers, and has {count:,} namespace{'' if count == 1 else 's'}"
