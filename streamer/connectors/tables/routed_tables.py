"""An output whose messages name their table: each is encoded for its own, by its columns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

import pyarrow as pa

from streamer.connectors.tables.table_output import ColumnCache, TableOutput
from streamer.connectors.tables.task_rows import MAX_PENDING_BYTES, TaskRows
from streamer.core.errors import MessageError
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch, Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.processing.batching import BatchPolicy

MAX_OPEN_TABLES: Final = 64
"""Tables of one output that a process has open; the one that was used least recently is closed."""

_MARK: Final = "\t"
_Opened = TypeVar("_Opened")
_Made = TypeVar("_Made")


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

    def __init__(
        self,
        target: TableTarget,
        caches: OpenTables[ColumnCache],
        policy: BatchPolicy | None = None,
    ) -> None:
        """Take the target.

        Args:
            target: knows the tables.
            caches: last as long as the worker.
            policy: how batches are cut and processed before; None to leave them as they are.
        """
        self.policy = policy
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
        made = self.apply_by_table(
            batch, ex, lambda place, some: self.table(place).encode(some, ex)
        )
        return [
            (join_route(route, place), body)
            for place, bodies in made.items()
            for route, body in bodies
        ]

    def apply_by_table(
        self, batch: Batch, ex: Execution, make: Callable[[str, Batch], _Made]
    ) -> dict[str, _Made]:
        """Return what is made of the messages of each table.

        Args:
            batch: the messages.
            ex: the run.
            make: takes a table, and its messages.

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
        made: dict[str, _Made] = {}
        for place, indexes in by_place.items():
            try:
                made[place] = make(place, [batch[index] for index in indexes])
            except SendError as error:
                errors |= {indexes[at]: text for at, text in error.errors.items()}
        if errors:
            raise SendError(next(iter(errors.values())), errors)
        return made

    def begin_task(self, task: MicroBatch, *, shares_disk: bool) -> RoutedTaskRows:
        """Return what collects the rows of a task; see `sdk.output.protocols.TaskEncoder`."""
        return RoutedTaskRows(self, task, shares_disk=shares_disk)

    def probe(self) -> str:
        """Check that tables can be reached."""
        return f"{self.describe()}: {self.target.check()}"


class RoutedTaskRows:
    """Collects the rows of the tables of one task; see `sdk.output.protocols.TaskCollector`.

    Attributes:
        append: bytes stand for themselves; nothing joins them.
        ignores_batches: rows are the same however messages are cut into batches.
    """

    append = False
    ignores_batches = True

    def __init__(self, output: RoutedTableOutput, task: MicroBatch, *, shares_disk: bool) -> None:
        """Begin without rows; see `TaskRows`."""
        self._output, self._task, self._shares_disk = output, task, shares_disk
        self._tables: dict[str, TaskRows | None] = {}

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Take messages; return what has become of those in hand, when they are many.

        Raises:
            SendError: some messages are no rows; its `errors` say which, and none is taken.
        """

        def make(place: str, some: Batch) -> pa.RecordBatch | list[tuple[str, bytes]]:
            rows = self._open(place)
            if rows is None:  # A row that replaces another is merged by the driver.
                return self._output.table(place).encode(some, ex)
            return rows.build(some, ex)

        routed: list[tuple[str, bytes]] = []
        for place, made in self._output.apply_by_table(batch, ex, make).items():
            rows = self._tables[place]
            if rows is not None:
                rows.hold(made)
            else:
                routed += ((join_route(route, place), body) for route, body in made)
        size = sum(rows.size for rows in self._tables.values() if rows is not None)
        if size >= MAX_PENDING_BYTES or len(self._tables) > MAX_OPEN_TABLES:
            routed += self.finish()
        return routed

    def _open(self, place: str) -> TaskRows | None:
        if place not in self._tables:
            table = self._output.table(place)
            self._tables[place] = table.begin_task(self._task, shares_disk=self._shares_disk)
        return self._tables[place]

    def finish(self) -> list[tuple[str, bytes]]:
        """Return what has become of the rows in hand, by their tables."""
        tables, self._tables = self._tables, {}
        return [
            (join_route(route, place), body)
            for place, rows in tables.items()
            if rows is not None
            for route, body in rows.finish()
        ]


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
