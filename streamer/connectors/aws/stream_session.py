"""Sessions of Kinesis: records go to the disk together with the positions behind them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import THROTTLED, AwsError
from streamer.connectors.aws.streams import (
    BEGINNING,
    ENDED,
    Shard,
    ShardPositions,
    parse_streams,
    start_time,
    stream_argument,
)
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields

STREAMS: Final = "streams"
START_FROM_OLDEST: Final = "start_from_oldest"

_MAX_READERS: Final = 8
_MAX_RECORDS: Final = 10_000
_LIST_S: Final = 30.0
"""Seconds after which the shards are listed again."""
_QUIET_S: Final = 1.0
"""Seconds after which a shard is asked again that had nothing."""
_BUSY_S: Final = 0.2
"""Seconds between requests for records of a shard: Kinesis answers five in a second."""


class StreamInput:
    """An input before it is opened."""

    def __init__(self, parsed: ParsedFields, labels: Mapping[str, str]) -> None:
        """Take the fields, and the labels of log lines and counts."""
        self._parsed = parsed
        self._labels = labels

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds."""
        store = SpoolStore.for_input(context)

        def session(one: Session) -> None:
            reader = StreamReader(self._parsed, one, self._labels)
            try:
                reader.run()
            except AwsError as error:
                raise ConnectionLostError(str(error)) from None
            finally:
                reader.close()

        start_sessions(context, store, "aws_kinesis", self._labels, session)
        return SpoolSource(context.directory, inline=not context.is_local)

    def probe(self) -> str:
        """Check that the streams are there."""
        client = AwsClient(self._parsed, "kinesis")
        try:
            streams = parse_streams(self._parsed[STREAMS])
            count = sum(len(list_shards(client, stream)) for stream in streams)
        finally:
            client.close()
        return f"{count} shards of {len(streams)} streams"


def list_shards(client: AwsClient, stream: str) -> list[Shard]:
    """Return the shards of a stream, closed ones among them.

    Raises:
        AwsError: the stream is not there, or nothing answers.
    """
    shards: list[Shard] = []
    argument = stream_argument(stream)
    while True:
        answer = client.run(lambda one, given=argument: one.list_shards(**given))  # type: ignore[misc]
        for one in answer["Shards"]:
            parents = (one.get("ParentShardId"), one.get("AdjacentParentShardId"))
            shards.append(Shard(one["ShardId"], tuple(filter(None, parents))))
        if not answer.get("NextToken"):
            return shards
        argument = {"NextToken": answer["NextToken"]}


class _Answer(NamedTuple):
    """Records of a shard.

    Attributes:
        records: as boto3 gives them.
        position: behind them.
        pause_s: how long the shard is not asked again.
    """

    records: Sequence[Mapping[str, Any]]
    position: str
    pause_s: float


class _ShardReader:
    """Reads a shard; one thread at a time.

    Attributes:
        stream: of the shard.
        shard: its name.
        due_at: when it is to be asked again, by the monotonic clock.
    """

    def __init__(self, client: AwsClient, stream: str, shard: str) -> None:
        self._client = client
        self._iterator: str | None = None
        self.stream = stream
        self.shard = shard
        self.due_at = 0.0

    def read(self, position: str) -> _Answer:
        """Return what comes behind a position.

        Raises:
            AwsError: the shard is not there, or nothing answers.
        """
        iterator = self._iterator or self._find_iterator(position)
        try:
            answer = self._client.run(
                lambda one: one.get_records(ShardIterator=iterator, Limit=_MAX_RECORDS)
            )
        except AwsError as error:
            self._iterator = None
            if error.code == "ExpiredIteratorException":
                return _Answer((), position, 0.0)
            if error.code in THROTTLED:
                return _Answer((), position, _QUIET_S)
            raise
        self._iterator = answer.get("NextShardIterator")
        records = answer["Records"]
        if self._iterator is None:
            return _Answer(records, ENDED, 0.0)
        if not records and not answer.get("MillisBehindLatest"):
            return _Answer(records, position, _QUIET_S)
        behind = records[-1]["SequenceNumber"] if records else position
        return _Answer(records, behind, _BUSY_S)

    def _find_iterator(self, position: str) -> str:
        at = start_time(position)
        given: dict[str, Any]
        if position == BEGINNING:
            given = {"ShardIteratorType": "TRIM_HORIZON"}
        elif at is not None:
            moment = datetime.fromtimestamp(at, UTC)
            given = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": moment}
        else:
            given = {
                "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                "StartingSequenceNumber": position,
            }
        answer = self._client.run(
            lambda one: one.get_shard_iterator(
                ShardId=self.shard, **stream_argument(self.stream), **given
            )
        )
        iterator: str = answer["ShardIterator"]
        return iterator


class StreamReader:
    """Reads the shards of streams until the stream stops."""

    def __init__(self, parsed: ParsedFields, session: Session, labels: Mapping[str, str]) -> None:
        """Take the fields, the session that writes to the disk, and the labels of log lines."""
        self._client = AwsClient(parsed, "kinesis")
        self._session = session
        self._labels = labels
        self._is_from_oldest: bool = parsed[START_FROM_OLDEST]
        self._mark: dict[str, dict[str, str]] = dict(session.store.mark or {})
        self._streams = {
            stream: ShardPositions(self._mark.get(stream, {}), shards)
            for stream, shards in parse_streams(parsed[STREAMS]).items()
        }
        self._readers: dict[tuple[str, str], _ShardReader] = {}
        self._list_at = 0.0
        self._pool = ThreadPoolExecutor(_MAX_READERS, "aws_kinesis shards")

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
        for stream, positions in self._streams.items():
            before = dict(positions.positions)
            for shard in positions.update(list_shards(self._client, stream), now_ms):
                text = f"The rest of {shard} of {stream} is lost: Kinesis keeps it no more"
                self._session.context.log("ERROR", text, self._labels)
            # A stream that is read from now on is read from the same time at the next start.
            if not before and now_ms is not None and not self._session.write([], self._new_mark()):
                return False
        self._list_at = time.monotonic() + _LIST_S
        readable = {
            (stream, shard)
            for stream, positions in self._streams.items()
            for shard in positions.list_readable()
        }
        for key in self._readers.keys() - readable:
            del self._readers[key]
        for key in readable - self._readers.keys():
            self._readers[key] = _ShardReader(self._client, *key)
        return True

    def _list_due(self) -> list[_ShardReader]:
        """Return the shards to ask now, those first that have waited longest."""
        now = time.monotonic()
        due = [one for one in self._readers.values() if one.due_at <= now]
        return sorted(due, key=lambda one: one.due_at)[:_MAX_READERS]

    def _read(self, reader: _ShardReader) -> _Answer:
        return reader.read(self._streams[reader.stream].positions[reader.shard])

    def _write(self, readers: Sequence[_ShardReader], answers: Sequence[_Answer]) -> bool:
        """Write what was read, and the positions behind it; return whether that is safe."""
        records: list[Record] = []
        has_moved = False
        for reader, answer in zip(readers, answers, strict=True):
            records += _make_records(reader, answer.records)
            positions = self._streams[reader.stream].positions
            has_moved |= positions[reader.shard] != answer.position
            positions[reader.shard] = answer.position
        return not has_moved or self._session.write(records, self._new_mark())

    def _new_mark(self) -> dict[str, dict[str, str]]:
        own = {stream: dict(one.positions) for stream, one in self._streams.items()}
        return {**self._mark, **own}

    def close(self) -> None:
        """End the threads, and the connections."""
        with suppress(RuntimeError):
            self._pool.shutdown()
        self._client.close()


def _make_records(reader: _ShardReader, records: Sequence[Mapping[str, Any]]) -> Iterator[Record]:
    for one in records:
        metadata = {
            "kinesis_stream": reader.stream,
            "kinesis_shard": reader.shard,
            "kinesis_partition_key": one.get("PartitionKey", ""),
            "kinesis_sequence_number": one["SequenceNumber"],
        }
        yield pack_each([one["Data"]], metadata)
