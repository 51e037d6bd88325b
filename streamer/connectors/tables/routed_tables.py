"""An output whose messages name their table: each is encoded for its own, by its columns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import make_invalid_rejection

MAX_OPEN_TABLES: Final = 64
"""Tables of one output that a process has open; the one that was used least recently is closed."""

_MARK: Final = "\t"
_Opened = TypeVar("_Opened")


class OpenTables(Generic[_Opened]):
    """Objects that are open for tables, as many as are allowed. Threads may share them."""

    def __init__(self, limit: int = MAX_OPEN_TABLES) -> None:
        """Begin with none."""
        self._limit = limit
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, _Opened] = OrderedDict()

    def get(self, place: str, make: Callable[[], _Opened]) -> _Opened:
        """Return what is open for a table, or make it; that of another table may be closed."""
        with self._lock:
            if place not in self._opened:
                self._opened[place] = make()
                if len(self._opened) > self._limit:
                    self._opened.popitem(last=False)
            self._opened.move_to_end(place)
            return self._opened[place]

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._opened)


class TableTarget(Protocol):
    """The places of the tables of an output."""

    def describe(self) -> str:
        """Return where they are, for messages, with what stands for parts of messages."""

    def place_of(self, message: Message, ex: Execution) -> str:
        """Return the table of a message, as a text that `open` takes.

        Raises:
            MessageError: it has none, or a name that no table can have.
        """

    def open(self, place: str, cache: ColumnCache) -> TableOutput:
        """Return the output of one table."""

    def check(self) -> str:
        """Check that tables can be reached, without one; return what there is, in words.

        Raises:
            StreamerError: they cannot, and another try finds the same.
        """


class RoutedTableOutput:
    """Encodes messages as rows of the tables that they name; see `sdk.output.protocols.Encoder`.

    Attributes:
        target: where the tables are.
        append: bytes of several batches may stand behind one another.
        ignores_batches: rows are the same however messages are cut into batches.
    """

    append = True
    ignores_batches = True

    def __init__(self, target: TableTarget, caches: OpenTables[ColumnCache]) -> None:
        """Take the target.

        Args:
            target: knows the tables.
            caches: last as long as the worker.
        """
        self.target = target
        self._caches = caches
        self._tables: OpenTables[TableOutput] = OpenTables()

    def describe(self) -> str:
        """Return where the tables are."""
        return self.target.describe()

    def table(self, place: str) -> TableOutput:
        """Return the output of one table."""
        cache = self._caches.get(place, ColumnCache)
        return self._tables.get(place, lambda: self.target.open(place, cache))

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return tables and their rows.

        Raises:
            SendError: some messages are no rows; its `errors` say which.
        """
        by_place: dict[str, list[int]] = {}
        errors: dict[int, str] = {}
        for index, message in enumerate(batch):
            try:
                by_place.setdefault(self.target.place_of(message, ex), []).append(index)
            except MessageError as error:
                errors[index] = make_invalid_rejection(str(error))
        routed: list[tuple[str, bytes]] = []
        for place, indexes in by_place.items():
            try:
                made = self.table(place).encode([batch[index] for index in indexes], ex)
                routed += ((join_route(route, place), body) for route, body in made)
            except SendError as error:
                errors |= {indexes[at]: text for at, text in error.errors.items()}
        if errors:
            raise SendError(next(iter(errors.values())), errors)
        return routed

    def probe(self) -> str:
        """Check that tables can be reached."""
        return f"{self.describe()}: {self.target.check()}"


def join_route(route: str, place: str) -> str:
    """Return the route of a table's own route, such as that of rows that were refused before."""
    return f"{route}{_MARK}{place}"


def split_route(route: str) -> tuple[str, str]:
    """Return the route within a table, and the table.

    Example:
        >>> split_route(join_route("delete", "demo.rows"))
        ('delete', 'demo.rows')
    """
    within, _, place = route.partition(_MARK)
    return within, place
