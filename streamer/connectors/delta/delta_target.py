"""Delta tables whose places come from messages."""

from __future__ import annotations

from collections.abc import Callable

from streamer.bloblang import Interpolation
from streamer.connectors.tables.message_names import check_name, interpolate_text
from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.execution import Execution
from streamer.core.message import Message


class DeltaTarget:
    """The tables of an output; see `TableTarget`."""

    def __init__(
        self, path: Interpolation, open_table: Callable[[str, ColumnCache], TableOutput]
    ) -> None:
        """Take the paths.

        Args:
            path: of a message's table; it begins with a directory that all of them have.
            open_table: returns the output of a path.
        """
        self._path = path
        self._fixed = path.text.partition("${!")[0].rpartition("/")[0]
        self._open_table = open_table

    def describe(self) -> str:
        """Return where they are."""
        return f"the Delta tables {self._path.text}"

    def place_of(self, message: Message, ex: Execution) -> str:
        """Return the path of a message's table; it stays below the directory of all."""
        path = interpolate_text(self._path, "path", message, ex)
        below = path.removeprefix(f"{self._fixed}/").rstrip("/")
        return "/".join([self._fixed, *(check_name(part, "path") for part in below.split("/"))])

    def open(self, place: str, cache: ColumnCache) -> TableOutput:
        """Return the output of one table."""
        return self._open_table(place, cache)

    def check(self) -> str:
        """Return that nothing is known before messages come."""
        return "messages name the tables, which are made with their first rows"
