"""Streams of DynamoDB: the changes of tables, as `ShardedService`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from streamer.connectors.aws.attribute_values import plain_item
from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.shard_reader import Records, ShardAnswer
from streamer.connectors.aws.streams import BEGINNING, Shard, start_time
from streamer.connectors.aws.tag_filter import TagFilter
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.core.durations import SECOND
from streamer.core.json.dump import dump_json
from streamer.core.timestamps import format_rfc3339
from streamer.sdk.spec import ParsedFields

TABLES: Final = "tables"
DISCOVERY_MODE: Final = "table_discovery_mode"
TAG_FILTER: Final = "table_tag_filter"
DISCOVERY_INTERVAL: Final = "table_discovery_interval"
BATCH_SIZE: Final = "batch_size"
POLL_INTERVAL: Final = "poll_interval"

BY_TAG: Final = "tag"

_MARGIN_S: Final = 10.0
"""Seconds by which changes are taken before the time from which on they are read: creation times
are full seconds, clocks differ, and a scan may miss what was written just before it.
"""
_MICROSECOND: Final = 1_000

LossReport = Callable[[str, str], None]
"""Takes the stream and the shard of records that are gone."""


def table_of(stream: str) -> str:
    """Return the name of the table of a stream.

    Example:
        >>> table_of("arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-01-01")
        'orders'
    """
    return stream.split("/")[1]


class TableStreams:
    """Streams of tables; see `ShardedService`."""

    def __init__(self, parsed: ParsedFields, report_loss: LossReport) -> None:
        """Take the fields of the component, and a function that reports records that are gone."""
        self._tables = AwsClient(parsed, "dynamodb")
        self._streams = AwsClient(parsed, "dynamodbstreams")
        self._parsed = parsed
        self._interval_s = parsed[DISCOVERY_INTERVAL] / SECOND
        self._batch_size: int = parsed[BATCH_SIZE]
        self._report_loss = report_loss
        self._known: dict[str, frozenset[str]] = {}
        self._list_at = 0.0
        self.quiet_s = parsed[POLL_INTERVAL] / SECOND

    def list_streams(self) -> Mapping[str, Collection[str]]:
        """Return the streams of the tables, by their ARNs.

        Raises:
            AwsError: a table that the config names is not there, or has no stream.
        """
        if time.monotonic() >= self._list_at:
            self._known = {self.find_stream(table): frozenset() for table in self._list_tables()}
            interval_s = self._interval_s or float("inf")
            self._list_at = time.monotonic() + interval_s
        return self._known

    def _list_tables(self) -> list[str]:
        if self._parsed[DISCOVERY_MODE] != BY_TAG:
            return list(self._parsed[TABLES])
        tags = TagFilter.parse(self._parsed[TAG_FILTER])
        return [table for table in self._all_tables() if self._has_tags(table, tags)]

    def _all_tables(self) -> Iterator[str]:
        given: dict[str, str] = {}
        while True:
            answer = self._tables.run(lambda one, given=given: one.list_tables(**given))  # type: ignore[misc]
            yield from answer["TableNames"]
            if not answer.get("LastEvaluatedTableName"):
                return
            given = {"ExclusiveStartTableName": answer["LastEvaluatedTableName"]}

    def _has_tags(self, table: str, tag_filter: TagFilter) -> bool:
        description = self.describe(table)
        if not description.get("LatestStreamArn"):
            return False
        given, tags = {"ResourceArn": description["TableArn"]}, {}
        while True:
            answer = self._tables.run(lambda one: one.list_tags_of_resource(**given))
            tags.update({one["Key"]: one["Value"] for one in answer.get("Tags", ())})
            if not answer.get("NextToken"):
                return tag_filter.matches(tags)
            given["NextToken"] = answer["NextToken"]

    def describe(self, table: str) -> Mapping[str, Any]:
        """Return what DynamoDB says of a table.

        Raises:
            AwsError: there is none.
        """
        answer = self._tables.run(lambda one: one.describe_table(TableName=table))
        description: Mapping[str, Any] = answer["Table"]
        return description

    def find_stream(self, table: str) -> str:
        """Return the ARN of the newest stream of a table.

        Raises:
            AwsError: there is no such table, or it has no stream.
        """
        description = self.describe(table)
        is_enabled = description.get("StreamSpecification", {}).get("StreamEnabled")
        stream: str = description.get("LatestStreamArn", "")
        if not stream or not is_enabled:
            raise AwsError(
                f"the table {table} has no stream; enable it with the view NEW_AND_OLD_IMAGES, or "
                "with another one",
                "NoStream",
            )
        return stream

    def list_shards(self, stream: str) -> list[Shard]:
        """Return the shards of a stream, closed ones among them."""
        shards: list[Shard] = []
        given = {"StreamArn": stream}
        while True:
            answer = self._streams.run(lambda one: one.describe_stream(**given))
            description = answer["StreamDescription"]
            for one in description["Shards"]:
                parent = one.get("ParentShardId")
                is_closed = "EndingSequenceNumber" in one.get("SequenceNumberRange", {})
                shards.append(Shard(one["ShardId"], (parent,) if parent else (), is_closed))
            if not description.get("LastEvaluatedShardId"):
                return shards
            given["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]

    def find_iterator(self, stream: str, shard: str, position: str, is_new: bool) -> str:
        """Return the iterator of the records behind a position.

        There is none of a time: records from the oldest on are read, and `select` leaves some out.
        """
        if start_time(position) is not None and is_new:
            given = {"ShardIteratorType": "LATEST"}
        elif position == BEGINNING or start_time(position) is not None:
            given = {"ShardIteratorType": "TRIM_HORIZON"}
        else:
            given = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": position}
        answer = self._streams.run(
            lambda one: one.get_shard_iterator(StreamArn=stream, ShardId=shard, **given)
        )
        iterator: str = answer["ShardIterator"]
        return iterator

    def fetch(self, iterator: str) -> ShardAnswer:
        """Return the next records."""
        answer = self._streams.run(
            lambda one: one.get_records(ShardIterator=iterator, Limit=self._batch_size)
        )
        records = answer["Records"]
        pause_s = 0.0 if records else self.quiet_s
        return ShardAnswer(records, answer.get("NextShardIterator"), pause_s)

    def select(self, position: str, records: Records) -> Records:
        """Return those of the records that are behind a position."""
        at = start_time(position)
        if at is None:
            return records
        first_s = at - _MARGIN_S
        return [one for one in records if one["dynamodb"][_CREATED].timestamp() >= first_s]

    def number_of(self, record: Mapping[str, Any]) -> str:
        """Return the sequence number of a record."""
        return str(record["dynamodb"]["SequenceNumber"])

    def make_record(self, stream: str, shard: str, record: Mapping[str, Any]) -> Record:
        """Return the message of a record."""
        change, table = record["dynamodb"], table_of(stream)
        payload = {
            "tableName": table,
            "eventID": record.get("eventID", ""),
            "eventName": record.get("eventName", ""),
            "eventVersion": record.get("eventVersion", ""),
            "eventSource": record.get("eventSource", ""),
            "awsRegion": record.get("awsRegion", ""),
            "dynamodb": _plain_change(change),
        }
        metadata = {
            "dynamodb_shard_id": shard,
            "dynamodb_sequence_number": self.number_of(record),
            "dynamodb_event_name": record.get("eventName", ""),
            "dynamodb_table": table,
        }
        if _CREATED in change:
            created_us = round(change[_CREATED].timestamp() * 1e6)
            metadata["dynamodb_approximate_creation_time"] = format_rfc3339(
                created_us * _MICROSECOND
            )
        return pack_each([dump_json(payload)], metadata)

    def report_loss(self, stream: str, shard: str) -> None:
        """Take note that records of a shard were not read, and are gone."""
        self._report_loss(stream, shard)

    def close(self) -> None:
        """Close the connections."""
        self._tables.close()
        self._streams.close()


_CREATED: Final = "ApproximateCreationDateTime"
_IMAGES: Final = {"Keys": "keys", "NewImage": "newImage", "OldImage": "oldImage"}


def _plain_change(change: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "sequenceNumber": change.get("SequenceNumber", ""),
        "streamViewType": change.get("StreamViewType", ""),
    }
    if "SizeBytes" in change:
        plain["sizeBytes"] = change["SizeBytes"]
    for name, plain_name in _IMAGES.items():
        if name in change:
            plain[plain_name] = plain_item(change[name])
    return plain
