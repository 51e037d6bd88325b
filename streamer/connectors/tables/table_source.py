"""A table as a replayable source: its rows at one version, then those that later versions add.

The planner lists files, one list at a time, and never opens one unless it must; workers read them.
A file that does not fit into a micro-batch is cut by row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from streamer.connectors.tables.input_fields import EARLIEST, LATEST
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.table_position import TablePosition, after_version, at_snapshot
from streamer.connectors.tables.table_reader import (
    NO_VERSION,
    DataFile,
    TablePiece,
    TableReader,
    TableReadError,
    TableStep,
)
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import LatestOffset, Limit, Offset

_EXPANSION: Final = 4
"""About how many bytes of messages are in one of a file."""

_MIN_PIECE_ROWS: Final = 50_000
"""Rows of a file for which a worker of its own is worth it."""

_RETRY_INTERVAL: Final = 2 * SECOND
_MAX_OPEN_PAUSE_S: Final = 10.0
_MIN_WATCH_INTERVAL_S: Final = 5.0


class _PlannedFile(NamedTuple):
    """A file on the way, or the end of a version where there is none.

    Attributes:
        at: the position of its first row that is not read, or behind the version.
        file: the file; None at the end of a version.
    """

    at: TablePosition
    file: DataFile | None


@dataclass(frozen=True)
class TableSource:
    """A table as a replayable source. It can be pickled.

    Attributes:
        reader: the table.
        start_from: where a stream begins, as the config has it.
        read_once: whether the source ends with the version that is the newest at the first start.
        poll_interval: how often to look for a newer version, ns.
        begin: the position of a stream without a checkpoint.
        until: the last version that is read; None for no end.
        identity: of the table at the first start; empty where there was none.
        batch_count: rows of a batch; those of one piece of a file.
    """

    reader: TableReader
    start_from: str = EARLIEST
    read_once: bool = False
    poll_interval: int = 5 * SECOND
    begin: TablePosition = TablePosition(is_done=True)
    until: int | None = None
    identity: str = ""
    batch_count: int = 1
    _planned: _Planned = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_planned", _Planned())

    def __reduce__(self) -> Any:
        return TableSource, (
            self.reader,
            self.start_from,
            self.read_once,
            self.poll_interval,
            self.begin,
            self.until,
            self.identity,
            self.batch_count,
        )

    def open(self, context: InputContext) -> TableSource:
        """Find where to begin, once, and watch the table from now on.

        Raises:
            TableReadError: there is nothing to read.
        """
        state = context.load_state()
        if state is None:
            state = self._find_state(context)
        # What a start does not save is forgotten at the next one.
        context.save_state(state)
        begin = TablePosition.from_offset(state["begin"])
        source = replace(self, begin=begin, until=state["until"], identity=state["table"])
        if source.until is None:
            watch = TableWatch(self.reader.newest_version, self.poll_interval, context)
            context.start(f"watch {self.reader.describe()}", watch.run)
        return source

    def _find_state(self, context: InputContext) -> dict[str, Any]:
        """Return where reading begins and ends; wait while nobody can say it."""
        pause, what = 0.5, self.reader.describe()
        while True:
            try:
                newest = self.reader.newest_version()
                if newest is None and self.read_once:
                    raise TableReadError(
                        f"{what} is not there, and read_once reads it as it is; make it first, or "
                        "let the input wait for it without read_once"
                    )
                if newest is not None:
                    self.reader.check()
                begin = self._find_begin(newest)
                identity = "" if newest is None else self.reader.identity()
            except TableUnavailableError as error:
                context.report_waiting(str(error))
                if context.wait(pause):
                    raise TableReadError(str(error)) from None
                pause = min(pause * 2, _MAX_OPEN_PAUSE_S)
                continue
            context.report_waiting("")
            until = newest if self.read_once else None
            return {"begin": begin.to_offset(), "until": until, "table": identity}

    def _find_begin(self, newest: int | None) -> TablePosition:
        if newest is None or newest == NO_VERSION:
            # What the table is made with is what it adds first.
            return after_version(NO_VERSION)
        if self.start_from == EARLIEST:
            return at_snapshot(newest)
        if self.start_from == LATEST:
            return after_version(newest)
        return after_version(self.reader.find_start(self.start_from))

    def initial_offset(self) -> Offset:
        """Return where a stream without a checkpoint begins."""
        return self.begin.to_offset()

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Go on from `start` until the limit, at a row; see `ReplayableSource`.

        Raises:
            TableReadError: the table cannot be read on.
        """
        planned = self._planned
        if self._is_at_end(start) or planned.is_current(start, now):
            return LatestOffset(start, 0, is_ended=self._is_at_end(start))
        try:
            self._check_identity()
            latest = self._find_end(TablePosition.from_offset(start), limit)
        except TableUnavailableError:
            # The driver reports it. Nothing has begun that could fail.
            planned.note_idle(start, now + _RETRY_INTERVAL)
            return LatestOffset(start, 0)
        if latest.offset == start:
            planned.note_idle(start, now + self.poll_interval)
        else:
            planned.note_rows()
        return latest

    def _check_identity(self) -> None:
        """Check once for each process that the table is the one that was read before.

        Raises:
            TableReadError: it is another one.
        """
        if self.identity and not self._planned.is_checked:
            identity = self.reader.identity()
            if identity and identity != self.identity:
                raise TableReadError(
                    f"{self.reader.describe()} was made anew since this stream has read it; its "
                    "versions say nothing of the former one. Delete the stream's checkpoint, and "
                    "the new table is read"
                )
            self._planned.is_checked = True

    def _is_at_end(self, offset: Offset) -> bool:
        return self.until is not None and offset == after_version(self.until).to_offset()

    def _find_end(self, start: TablePosition, limit: Limit) -> LatestOffset:
        rows, size, end = 0, 0, start
        for at, file in self._files_from(start):
            if file is None:
                end = at
                continue
            total = self._rows_of(file)
            left = max(total - at.row, 0)
            taken = file.size * _EXPANSION * left // max(total, 1)
            if rows + left > limit.messages or size + taken > limit.size:
                if not rows:
                    fitting = left * limit.size // max(taken, 1)
                    rows = min(self._round_up(min(limit.messages, fitting)), left)
                    at = at._replace(row=at.row + rows)
                return LatestOffset(at.to_offset(), rows, has_more=True)
            rows, size = rows + left, size + taken
        # Versions without rows are left behind too: they may be gone at the next start.
        waiting = max(rows, int(end != start))
        offset = end.to_offset()
        return LatestOffset(offset, waiting, is_ended=self._is_at_end(offset))

    def _round_up(self, rows: int) -> int:
        """Return the number of rows of whole batches, one at least."""
        return max(-(-rows // self.batch_count), 1) * self.batch_count

    def _rows_of(self, file: DataFile) -> int:
        return file.rows if file.rows >= 0 else self.reader.count_rows(file)

    def _files_from(self, start: TablePosition) -> Iterator[_PlannedFile]:
        """Give the files from a position on, and the end of each version."""
        if not start.is_done:
            yield from self._files_of(start.step, start)
            yield _PlannedFile(after_version(start.version), None)
        if start.version == self.until:
            return
        for version in self.reader.versions_after(start.version):
            step = TableStep(version, is_snapshot=False)
            yield from self._files_of(step, TablePosition(version))
            yield _PlannedFile(after_version(version), None)
            if version == self.until:
                return

    def _files_of(self, step: TableStep, start: TablePosition) -> Iterator[_PlannedFile]:
        for group in range(start.group, self.reader.count_groups(step)):
            files = self.reader.list_files(step, group)
            first = start.file if group == start.group else 0
            for number in range(first, len(files)):
                row = start.row if (group, number) == (start.group, start.file) else 0
                at = TablePosition(step.version, step.is_snapshot, False, group, number, row)
                yield _PlannedFile(at, files[number])

    def split(self, start: Offset, end: Offset, parts: int) -> list[TablePiece]:
        """Cut what lies between two offsets into pieces, in order; large files into several.

        Raises:
            TableReadError: it is not there any more.
            TableUnavailableError: the store does not answer.
        """
        last = TablePosition.from_offset(end)
        ranges: list[tuple[_PlannedFile, int]] = []
        for one in self._files_from(TablePosition.from_offset(start)):
            if one.at == last:
                break
            if one.file is None:
                continue
            if one.at._replace(row=0) == last._replace(row=0):
                ranges.append((one, last.row - one.at.row))
                break
            ranges.append((one, self._rows_of(one.file) - one.at.row))
        total = sum(count for _, count in ranges)
        share = self._round_up(max(-(-total // max(parts, 1)), _MIN_PIECE_ROWS))
        pieces = []
        contexts: dict[TableStep, Any] = {}
        for (at, file), count in ranges:
            assert file is not None
            if at.step not in contexts:
                contexts[at.step] = self.reader.context_of(at.step)
            for first in range(at.row, at.row + count, share):
                taken = min(share, at.row + count - first)
                pieces.append(TablePiece(file, at.step, first, taken, contexts[at.step]))
        return pieces

    def read(self, piece: TablePiece, ex: Execution) -> Iterator[list[Batch]]:
        """Read the rows of a piece.

        Raises:
            TableReadError: the file is gone, or is not what the table says.
        """
        meta = self.reader.metadata_of(piece)
        pending: Batch = []
        for rows, operations in self.reader.read(piece, ex):
            values = self.reader.documents_of(rows)
            if operations is None:
                pending += [Message.from_value(one, meta) for one in values]
            else:
                pending += [
                    Message.from_value(one, {**meta, "operation": operation})
                    for one, operation in zip(values, operations, strict=True)
                ]
            whole = len(pending) // self.batch_count * self.batch_count
            yield self._cut_batches(pending[:whole])
            pending = pending[whole:]
        if pending:
            yield [pending]

    def _cut_batches(self, messages: Batch) -> list[Batch]:
        size = self.batch_count
        return [messages[at : at + size] for at in range(0, len(messages), size)]

    def partition_of(self, piece: TablePiece) -> str:
        """The table is a partition: its files have no order among themselves."""
        return self.reader.name

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: the table is polled."""

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return when to look for another version."""
        return max(self._planned.next_at, now)

    def on_committed(self, end: Offset) -> None:
        """Do nothing: the table is its owner's."""

    def on_finished(self) -> None:
        """Do nothing: the table is its owner's."""

    def probe(self) -> str:
        """Check the table; see `SupportsProbe`."""
        return f"{self.reader.describe()} {self.reader.check()}"


class _Planned:
    """Knowledge of the planner since the newest poll of the table."""

    def __init__(self) -> None:
        self.next_at = 0
        self.is_checked = False
        self._idle_start: Offset | None = None

    def is_current(self, start: Offset, now: int) -> bool:
        """Return whether it is too early to look again behind a position."""
        return start == self._idle_start and now < self.next_at

    def note_idle(self, start: Offset, next_at: int) -> None:
        """Note that there was nothing behind a position, and when to look again, Unix ns."""
        self._idle_start, self.next_at = start, next_at

    def note_rows(self) -> None:
        """Note that there was something."""
        self._idle_start, self.next_at = None, 0


class TableWatch:
    """Reports while a table cannot be read."""

    def __init__(self, poll: Callable[[], object], interval: int, context: InputContext) -> None:
        """Take what looks at the table, and raises where it cannot be read; and how often, ns."""
        self._poll, self._context = poll, context
        self._interval_s = max(interval / SECOND, _MIN_WATCH_INTERVAL_S)

    def run(self) -> None:
        """Poll the table until the stream stops."""
        is_away = False
        while not self._context.wait(self._interval_s):
            try:
                self._poll()
            except (TableUnavailableError, TableReadError) as error:
                if not is_away:
                    self._context.log("WARN", f"A table cannot be read now: {error}", {})
                self._context.report_waiting(str(error))
                is_away = True
                continue
            if is_away:
                self._context.report_waiting("")
                is_away = False
