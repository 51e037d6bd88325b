"""Readers of sharded streams: records go to the disk together with the positions behind them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from streamer.connectors.aws.errors import THROTTLED, AwsError
from streamer.connectors.aws.streams import BEGINNING, ENDED, Shard, ShardPositions
from streamer.connectors.spool.blocks import Record
from streamer.connectors.spool.reconnecting_receiver import Session

MAX_READERS: Final = 8
"""Shards that are read at once."""
_LIST_S: Final = 30.0
"""Seconds after which the shards are listed again."""
_EXPIRED: Final = "ExpiredIteratorException"
_TRIMMED: Final = "TrimmedDataAccessException"

Records = Sequence[Mapping[str, Any]]
Positions = dict[str, dict[str, str]]
"""Positions by the stream and the shard."""


class ShardAnswer(NamedTuple):
    """The answer of a service to a request for records.

    Attributes:
        records: as boto3 gives them.
        iterator: of the records behind them; None at the end of the shard.
        pause_s: how long the shard needs not be asked again.
    """

    records: Records
    iterator: str | None
    pause_s: float


class ShardedService(Protocol):
    """A service whose streams have shards."""

    quiet_s: float
    """Seconds after which a shard is asked again that had nothing, or was throttled."""

    def list_streams(self) -> Mapping[str, Collection[str]]:
        """Return the streams to read, and by each the only shards that are read; none for all."""

    def list_shards(self, stream: str) -> list[Shard]:
        """Return the shards of a stream, closed ones among them."""

    def find_iterator(self, stream: str, shard: str, position: str, is_new: bool) -> str:
        """Return the iterator of the records behind a position.

        Args:
            stream: of the shard.
            shard: its name.
            position: see `ShardPositions`.
            is_new: whether the position was made just now.
        """

    def fetch(self, iterator: str) -> ShardAnswer:
        """Return the next records."""

    def select(self, position: str, records: Records) -> Records:
        """Return those of the records that are behind a position."""

    def number_of(self, record: Mapping[str, Any]) -> str:
        """Return the sequence number of a record."""

    def make_record(self, stream: str, shard: str, record: Mapping[str, Any]) -> Record:
        """Return the message of a record."""

    def report_loss(self, stream: str, shard: str) -> None:
        """Take note that records of a shard were not read, and are gone."""

    def close(self) -> None:
        """Close the connections."""


class _Answer(NamedTuple):
    """Records of a shard, the position behind them, and how long it is not asked again."""

    records: Records
    position: str
    pause_s: float


class _ShardReader:
    """Reads a shard; one thread at a time.

    Attributes:
        stream: of the shard.
        shard: its name.
        due_at: when it is to be asked again, by the monotonic clock.
    """

    def __init__(self, service: ShardedService, stream: str, shard: str, is_new: bool) -> None:
        self._service = service
        self._iterator: str | None = None
        self._is_new = is_new
        self.stream = stream
        self.shard = shard
        self.due_at = 0.0

    def begin(self, position: str) -> None:
        """Make the iterator of a position that was made just now: it may depend on the time."""
        if self._is_new:
            self._iterator = self._service.find_iterator(self.stream, self.shard, position, True)
            self._is_new = False

    def read(self, position: str) -> _Answer:
        """Return what comes behind a position.

        Raises:
            AwsError: the shard is not there, or nothing answers.
        """
        try:
            iterator = self._iterator or self._service.find_iterator(
                self.stream, self.shard, position, False
            )
            answer = self._service.fetch(iterator)
        except AwsError as error:
            return self._recover(position, error)
        self._iterator = answer.iterator
        records = self._service.select(position, answer.records)
        if self._iterator is None:
            return _Answer(records, ENDED, 0.0)
        behind = self._service.number_of(records[-1]) if records else position
        return _Answer(records, behind, answer.pause_s)

    def _recover(self, position: str, error: AwsError) -> _Answer:
        self._iterator = None
        if error.code == _EXPIRED:
            return _Answer((), position, 0.0)
        if error.code in THROTTLED:
            return _Answer((), position, self._service.quiet_s)
        if error.code != _TRIMMED:
            raise error
        if position != BEGINNING:
            self._service.report_loss(self.stream, self.shard)
        return _Answer((), BEGINNING, self._service.quiet_s)


class StreamReader:
    """Reads the shards of streams until the stream stops."""

    def __init__(
        self,
        service: ShardedService,
        session: Session,
        saved: Mapping[str, Mapping[str, str]],
        make_mark: Callable[[Positions], Any],
        is_from_oldest: bool,
    ) -> None:
        """Begin where the last start has ended.

        Args:
            service: which has the streams.
            session: writes to the disk.
            saved: the positions on the disk, by stream and shard.
            make_mark: makes the mark of positions.
            is_from_oldest: whether a stream that is new begins at its oldest record.
        """
        self._service = service
        self._session = session
        self._is_from_oldest = is_from_oldest
        self._saved = saved
        self._make_mark = make_mark
        self._streams: dict[str, ShardPositions] = {}
        self._readers: dict[tuple[str, str], _ShardReader] = {}
        self._list_at = 0.0
        self._pool = ThreadPoolExecutor(MAX_READERS, "shards")

    def run(self) -> None:
        """Read.

        Raises:
            AwsError: a stream is not there, or nothing answers.
        """
        context = self._session.context
        while not context.stopping:
            if time.monotonic() >= self._list_at:
                if not self._list_shards():
                    return
                self._session.set_connected()
            due = self._list_due()
            answers = list(self._pool.map(self._read, due))
            if context.stopping or not self._write(due, answers):
                return
            now = time.monotonic()
            for reader, answer in zip(due, answers, strict=True):
                reader.due_at = now + answer.pause_s
                if answer.position == ENDED:
                    self._list_at = 0.0
            times = [self._list_at, *(one.due_at for one in self._readers.values())]
            context.wait(max(min(times) - now, 0.0))

    def _list_shards(self) -> bool:
        """List the shards, and note where new ones begin; return whether that is safe."""
        now_ms = None if self._is_from_oldest else time.time_ns() // 1_000_000
        fresh: set[str] = set()
        for stream, selected in self._service.list_streams().items():
            if stream not in self._streams:
                self._streams[stream] = ShardPositions(self._saved.get(stream, {}), selected)
            positions = self._streams[stream]
            before = dict(positions.positions)
            for shard in positions.update(self._service.list_shards(stream), now_ms):
                self._service.report_loss(stream, shard)
            # A stream that is read from now on is read from the same time at the next start.
            if not before and now_ms is not None:
                fresh.add(stream)
                if not self._session.write([], self._new_mark()):
                    return False
        self._list_at = time.monotonic() + _LIST_S
        readable = {
            (stream, shard)
            for stream, positions in self._streams.items()
            for shard in positions.list_readable()
        }
        for key in self._readers.keys() - readable:
            del self._readers[key]
        for stream, shard in readable - self._readers.keys():
            reader = _ShardReader(self._service, stream, shard, stream in fresh)
            reader.begin(self._streams[stream].positions[shard])
            self._readers[stream, shard] = reader
        return True

    def _list_due(self) -> list[_ShardReader]:
        """Return the shards to ask now, those first that have waited longest."""
        now = time.monotonic()
        due = [one for one in self._readers.values() if one.due_at <= now]
        return sorted(due, key=lambda one: one.due_at)[:MAX_READERS]

    def _read(self, reader: _ShardReader) -> _Answer:
        return reader.read(self._streams[reader.stream].positions[reader.shard])

    def _write(self, readers: Sequence[_ShardReader], answers: Sequence[_Answer]) -> bool:
        """Write what was read, and the positions behind it; return whether that is safe."""
        records: list[Record] = []
        has_moved = False
        for reader, answer in zip(readers, answers, strict=True):
            records += (
                self._service.make_record(reader.stream, reader.shard, one)
                for one in answer.records
            )
            positions = self._streams[reader.stream].positions
            has_moved |= positions[reader.shard] != answer.position
            positions[reader.shard] = answer.position
        return not has_moved or self._session.write(records, self._new_mark())

    def _new_mark(self) -> Any:
        return self._make_mark({key: dict(one.positions) for key, one in self._streams.items()})

    def close(self) -> None:
        """End the threads, and the connections."""
        with suppress(RuntimeError):
            self._pool.shutdown()
        self._service.close()
