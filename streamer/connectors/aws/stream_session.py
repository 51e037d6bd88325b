"""Sessions of Kinesis: its streams, read shard by shard."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.shard_reader import Positions, Records, ShardAnswer, StreamReader
from streamer.connectors.aws.streams import (
    BEGINNING,
    Shard,
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
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields

STREAMS: Final = "streams"
START_FROM_OLDEST: Final = "start_from_oldest"

_MAX_RECORDS: Final = 10_000
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

        def session(one: Session) -> None:
            reader = self._make_reader(one)
            try:
                reader.run()
            except AwsError as error:
                raise ConnectionLostError(str(error)) from None
            finally:
                reader.close()

        return start_sessions(context, "aws_kinesis", self._labels, session)

    def _make_reader(self, session: Session) -> StreamReader:
        mark: Positions = dict(session.store.mark or {})
        service = KinesisStreams(self._parsed, session, self._labels)
        is_from_oldest: bool = self._parsed[START_FROM_OLDEST]
        return StreamReader(service, session, mark, lambda own: {**mark, **own}, is_from_oldest)

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


class KinesisStreams:
    """Streams of Kinesis, as `ShardedService`."""

    quiet_s = 1.0

    def __init__(self, parsed: ParsedFields, session: Session, labels: Mapping[str, str]) -> None:
        """Take the fields, the session for its log, and the labels of log lines."""
        self._client = AwsClient(parsed, "kinesis")
        self._selected = parse_streams(parsed[STREAMS])
        self._session = session
        self._labels = labels

    def list_streams(self) -> Mapping[str, Collection[str]]:
        """Return the streams of the config."""
        return self._selected

    def list_shards(self, stream: str) -> list[Shard]:
        """Return the shards of a stream, closed ones among them."""
        return list_shards(self._client, stream)

    def find_iterator(self, stream: str, shard: str, position: str, is_new: bool) -> str:
        """Return the iterator of the records behind a position."""
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
            lambda one: one.get_shard_iterator(ShardId=shard, **stream_argument(stream), **given)
        )
        iterator: str = answer["ShardIterator"]
        return iterator

    def fetch(self, iterator: str) -> ShardAnswer:
        """Return the next records."""
        answer = self._client.run(
            lambda one: one.get_records(ShardIterator=iterator, Limit=_MAX_RECORDS)
        )
        records = answer["Records"]
        is_quiet = not records and not answer.get("MillisBehindLatest")
        pause_s = self.quiet_s if is_quiet else _BUSY_S
        return ShardAnswer(records, answer.get("NextShardIterator"), pause_s)

    def select(self, position: str, records: Records) -> Records:
        """Return the records: all are behind the position."""
        return records

    def number_of(self, record: Mapping[str, Any]) -> str:
        """Return the sequence number of a record."""
        return str(record["SequenceNumber"])

    def make_record(self, stream: str, shard: str, record: Mapping[str, Any]) -> Record:
        """Return the message of a record."""
        metadata = {
            "kinesis_stream": stream,
            "kinesis_shard": shard,
            "kinesis_partition_key": record.get("PartitionKey", ""),
            "kinesis_sequence_number": record["SequenceNumber"],
        }
        return pack_each([record["Data"]], metadata)

    def report_loss(self, stream: str, shard: str) -> None:
        """Log that the rest of a shard is lost."""
        text = f"The rest of {shard} of {stream} is lost: Kinesis keeps it no more"
        self._session.context.log("ERROR", text, self._labels)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
