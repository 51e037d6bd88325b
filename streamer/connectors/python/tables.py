"""Tables of `table_resources` as users' functions look rows up in them."""

from __future__ import annotations

from typing import Any

from streamer.core.errors import StreamerError
from streamer.core.lookup_tables import LookupTable, current_tables


class Table:
    """One version of a table: it stays the same for a whole call."""

    def __init__(self, table: LookupTable) -> None:
        """Take the table."""
        self._table = table

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the row of a key, an object of its own; the default where there is none."""
        row = self._table.get(key)
        return default if row is None else row

    def __getitem__(self, key: Any) -> dict[str, Any]:
        row = self._table.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def __contains__(self, key: Any) -> bool:
        return self._table.get(key) is not None

    def __len__(self) -> int:
        return len(self._table)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows."""
        return list(self._table.all().values())


class Tables:
    """The tables of a stream, by label: `tables["cities"].get("Berlin")`."""

    def __getitem__(self, label: str) -> Table:
        tables = current_tables()
        if tables is None:
            raise KeyError(f"the table {label!r} cannot be looked up here")
        try:
            return Table(tables.find(label))
        except StreamerError as e:
            raise KeyError(str(e)) from None
