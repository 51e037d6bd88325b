"""The input `aws_dynamodb_cdc`: changes and snapshots, with a simulated DynamoDB of one shard."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.streams import ENDED
from streamer.connectors.aws.table_streams import TableStreams
from streamer.connectors.aws.tag_filter import TagFilter
from streamer.core.errors import ConfigError
from tests.components.inputs.landing import Taken, receiving
from tests.components.inputs.reading import built
from tests.servers import lasting_port
from tests.servers.aws import REGION, Aws, aws_server

SEED = int(os.environ.get("STREAMER_SEED") or random.SystemRandom().randrange(10**6))


def make_table(aws: Aws, name: str, view: str = "NEW_AND_OLD_IMAGES") -> None:
    """Make a table whose key is the number `id`; without a stream where there is no view."""
    stream = {"StreamEnabled": True, "StreamViewType": view} if view else {"StreamEnabled": False}
    aws.client("dynamodb").create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification=stream,
    )


def put(aws: Aws, table: str, numbers: Iterable[int], text: str = "first") -> None:
    """Write items, past the API: moto's takes a millisecond for each."""
    from moto.dynamodb.models import dynamodb_backends

    backend = dynamodb_backends["123456789012"][REGION]
    for n in numbers:
        backend.get_table(table).put_item({"id": {"N": f"{n}"}, "text": {"S": text}})


def changes(taken: Taken, number: int) -> list[Any]:
    """Wait for messages, and return their payloads."""
    return [json.loads(raw) for raw in taken.raws(number)]


def ids(payloads: Iterable[Any]) -> list[int]:
    parts = [one["dynamodb"] for one in payloads]
    return [int((part.get("keys") or part["newImage"])["id"]) for part in parts]


def is_last(raw: bytes) -> bool:
    """Return whether a message is the change that is made last."""
    return b"INSERT" in raw and b'"1000"' in raw


def replay(payloads: Iterable[Any]) -> dict[int, str]:
    """Return the table that results from messages: the oracle of a copy."""
    table: dict[int, str] = {}
    for one in payloads:
        change = one["dynamodb"]
        image = change.get("newImage")
        if one["eventName"] == "REMOVE":
            table.pop(int(change["keys"]["id"]), None)
        else:
            table[int(image["id"])] = image["text"]
    return table


@pytest.mark.slow
class TestChanges:
    def test_ten_thousand_changes_are_read_once_over_two_starts(
        self, aws: Aws, tmp_path: Path
    ) -> None:
        make_table(aws, "many", view="KEYS_ONLY")
        put(aws, "many", range(6_000))
        config = f"aws_dynamodb_cdc: {{tables: [many], poll_interval: 100ms, {aws.fields}}}"
        with receiving(tmp_path, config) as taken:
            assert ids(changes(taken, 6_000)) == list(range(6_000))
        put(aws, "many", range(6_000, 10_000))
        with receiving(tmp_path, config) as taken:
            assert ids(changes(taken, 10_000)) == list(range(10_000))
            put(aws, "many", [10_000])
            assert ids(changes(taken, 10_001))[-1] == 10_000

    def test_a_change_of_each_kind_with_values_of_all_types(self, aws: Aws, tmp_path: Path) -> None:
        make_table(aws, "kinds")
        client = aws.client("dynamodb")
        item: dict[str, Any] = {
            "id": {"N": "123456789012345678901234567890"},
            "raw": {"B": b"\x00\xff"},
            "yes": {"BOOL": True},
            "nil": {"NULL": True},
            "set": {"NS": ["1.50"]},
            "raws": {"BS": [b"a"]},
            "deep": {"M": {"list": {"L": [{"S": "x"}, {"N": "1"}]}}},
            "large": {"S": "ä" * 150_000},
        }
        client.put_item(TableName="kinds", Item=item)
        client.put_item(TableName="kinds", Item={"id": item["id"], "yes": {"BOOL": False}})
        client.delete_item(TableName="kinds", Key={"id": item["id"]})
        with receiving(tmp_path, f"aws_dynamodb_cdc: {{tables: [kinds], {aws.fields}}}") as taken:
            first, second, third = changes(taken, 3)
        assert first["dynamodb"]["newImage"] == {
            "id": "123456789012345678901234567890",
            "raw": "AP8=",
            "yes": True,
            "nil": None,
            "set": ["1.50"],
            "raws": ["YQ=="],
            "deep": {"list": ["x", "1"]},
            "large": "ä" * 150_000,
        }
        assert "oldImage" not in first["dynamodb"] and first["tableName"] == "kinds"
        assert second["dynamodb"]["oldImage"]["raw"] == "AP8="
        assert third["dynamodb"]["keys"] == {"id": "123456789012345678901234567890"}
        assert [one["eventName"] for one in (first, second, third)] == [
            *("INSERT", "MODIFY", "REMOVE")
        ]
        meta = dict(taken.messages[0].meta)
        assert meta.pop("dynamodb_approximate_creation_time").endswith("Z")
        assert meta.pop("dynamodb_shard_id") and meta.pop("dynamodb_sequence_number")
        assert meta == {"dynamodb_event_name": "INSERT", "dynamodb_table": "kinds"}

    def test_from_now_on_misses_nothing_at_the_second_start(self, aws: Aws, tmp_path: Path) -> None:
        make_table(aws, "late")
        put(aws, "late", range(3))
        config = (
            "aws_dynamodb_cdc: {tables: [late], start_from: latest, poll_interval: 50ms, "
            f"{aws.fields}}}"
        )
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_up")
            put(aws, "late", range(3, 5))
            assert ids(changes(taken, 2)) == [3, 4]
        put(aws, "late", range(5, 7))
        with receiving(tmp_path, config) as taken:
            assert ids(changes(taken, 4)) == [3, 4, 5, 6]

    def test_tables_by_their_tags(self, aws: Aws, tmp_path: Path) -> None:
        client = aws.client("dynamodb")
        for name, environment in (("tag_a", "prod"), ("tag_b", "test"), ("tag_c", "none")):
            make_table(aws, name)
            arn = client.describe_table(TableName=name)["Table"]["TableArn"]
            client.tag_resource(ResourceArn=arn, Tags=[{"Key": "env", "Value": environment}])
            put(aws, name, [1], name)
        config = (
            "aws_dynamodb_cdc: {table_discovery_mode: tag, table_tag_filter: 'env:prod,test', "
            f"{aws.fields}}}"
        )
        with receiving(tmp_path, config) as taken:
            payloads = changes(taken, 2)
        assert {one["tableName"] for one in payloads} == {"tag_a", "tag_b"}

    def test_a_server_that_comes_back(self, tmp_path: Path) -> None:
        port = lasting_port()
        aws = Aws(port)
        config = f"aws_dynamodb_cdc: {{tables: [back], poll_interval: 50ms, {aws.fields}}}"
        with receiving(tmp_path, config) as taken:
            with aws_server(port):
                make_table(aws, "back")
                put(aws, "back", range(2))
                assert ids(changes(taken, 2)) == [0, 1]
            taken.counted("input_connection_lost")
            with aws_server(port):
                put(aws, "back", range(2, 4))
                assert ids(changes(taken, 4)) == [0, 1, 2, 3]

    def test_a_table_that_is_not_there_and_one_without_a_stream(self, aws: Aws) -> None:
        make_table(aws, "still", view="")
        for name, text in (("nowhere", "not found"), ("still", "the table still has no stream")):
            source = built(f"input: {{aws_dynamodb_cdc: {{tables: [{name}], {aws.fields}}}}}")
            with pytest.raises(AwsError, match=text):
                source.probe()
        make_table(aws, "there")
        source = built(f"input: {{aws_dynamodb_cdc: {{tables: [there], {aws.fields}}}}}")
        assert source.probe() == "1 shards of 1 tables"


@pytest.mark.slow
class TestSnapshot:
    def test_a_copy_that_was_interrupted_has_what_the_table_has(
        self, aws: Aws, tmp_path: Path
    ) -> None:
        make_table(aws, "copy")
        put(aws, "copy", range(600))
        chance, client = random.Random(SEED), aws.client("dynamodb")
        config = (
            "aws_dynamodb_cdc: {tables: [copy], snapshot_mode: snapshot_and_cdc, "
            "snapshot_segments: 3, snapshot_batch_size: 20, snapshot_throttle: 1ms, "
            f"poll_interval: 50ms, {aws.fields}}}"
        )
        with receiving(tmp_path, config) as taken:
            changes(taken, chance.randint(1, 300))
        for at in chance.sample(range(600), 50):
            client.delete_item(TableName="copy", Key={"id": {"N": f"{at}"}})
        put(aws, "copy", chance.sample(range(700), 50), "second")
        with receiving(tmp_path, config) as taken:
            put(aws, "copy", [1_000], "last")
            taken.until(lambda found: any(is_last(one.raw) for one in found))
            payloads = [json.loads(one.raw) for one in taken.messages]
        items = client.scan(TableName="copy")["Items"]
        assert replay(payloads) == {int(one["id"]["N"]): one["text"]["S"] for one in items}
        read = [one for one in payloads if one["eventName"] == "READ"]
        assert len(ids(read)) == len(set(ids(read))) >= 550
        assert dict(taken.messages[0].meta).keys() == {
            *("dynamodb_event_name", "dynamodb_table", "dynamodb_snapshot_segment")
        }

    def test_a_snapshot_alone_ends(self, aws: Aws, tmp_path: Path) -> None:
        make_table(aws, "alone", view="")
        put(aws, "alone", range(30))
        config = (
            "aws_dynamodb_cdc: {tables: [alone], snapshot_mode: snapshot_only, "
            f"snapshot_batch_size: 7, snapshot_throttle: 1ms, {aws.fields}}}"
        )
        with receiving(tmp_path, config) as taken:
            assert sorted(ids(changes(taken, 30))) == list(range(30))
            for thread in taken.lodged.house.threads:
                thread.join(30)
                assert not thread.is_alive()
        with receiving(tmp_path, config) as taken:
            assert len(changes(taken, 30)) == 30


class _DynamoDb:
    """A table whose first shard was split; its records are gone when they are asked for."""

    stream = "arn:aws:dynamodb:eu-west-1:123456789012:table/a/stream/1"

    def __init__(self) -> None:
        self.trimmed = False
        self.shards: list[dict[str, Any]] = [
            {"ShardId": "old", "SequenceNumberRange": {"EndingSequenceNumber": "2"}},
            {"ShardId": "new", "ParentShardId": "old", "SequenceNumberRange": {}},
        ]
        self.scans = 0

    def describe_table(self, **_: Any) -> Any:
        table = {"LatestStreamArn": self.stream, "StreamSpecification": {"StreamEnabled": True}}
        return {"Table": table}

    def describe_stream(self, ExclusiveStartShardId: str = "", **_: Any) -> Any:  # noqa: N803
        """Return one shard at a time."""
        shards = self.shards[1:] if ExclusiveStartShardId else self.shards[:1]
        last = {} if ExclusiveStartShardId else {"LastEvaluatedShardId": "old"}
        return {"StreamDescription": {"Shards": shards, **last}}

    def get_shard_iterator(self, ShardId: str, SequenceNumber: str = "0", **_: Any) -> Any:  # noqa: N803
        if self.trimmed and SequenceNumber != "0":
            raise AwsError("gone", "TrimmedDataAccessException")
        return {"ShardIterator": f"{ShardId} {SequenceNumber}"}

    def get_records(self, ShardIterator: str, **_: Any) -> Any:  # noqa: N803
        shard, at = ShardIterator.split()
        first, end = (1, 3) if shard == "old" else (3, 5)
        number = max(int(at) + 1, first)
        if number >= end:
            return {"Records": [], **({} if shard == "old" else {"NextShardIterator": "new 4"})}
        return {"Records": [make_change(number)], "NextShardIterator": f"{shard} {number}"}

    def scan(self, **_: Any) -> Any:
        self.scans += 1
        return {"Items": [{"id": {"N": f"{100 * self.scans}"}}]}

    def close(self) -> None:
        pass


def make_change(number: int, age_s: float = 0.0) -> dict[str, Any]:
    """Return a record as boto3 gives it."""
    created = datetime.now(UTC) - timedelta(seconds=age_s)
    image = {"id": {"N": f"{number}"}}
    change = {"SequenceNumber": f"{number}", "NewImage": image}
    return {
        "eventName": "INSERT",
        "dynamodb": {**change, "ApproximateCreationDateTime": created.replace(microsecond=0)},
    }


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> _DynamoDb:
    made = _DynamoDb()
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(made))
    return made


class TestShards:
    def test_a_shard_comes_behind_the_one_that_it_was_split_from(
        self, service: _DynamoDb, tmp_path: Path
    ) -> None:
        with receiving(tmp_path, "aws_dynamodb_cdc: {tables: [a]}") as taken:
            assert ids(changes(taken, 4)) == [1, 2, 3, 4]

    def test_a_snapshot_is_read_again_when_changes_are_gone(
        self, service: _DynamoDb, tmp_path: Path
    ) -> None:
        config = "aws_dynamodb_cdc: {tables: [a], snapshot_mode: snapshot_and_cdc}"
        with receiving(tmp_path, config) as taken:
            # The closed shard is older than the snapshot.
            assert ids(changes(taken, 3)) == [100, 3, 4]
        service.trimmed = True
        with receiving(tmp_path, config) as taken:
            assert ids(changes(taken, 6))[3:] == [200, 3, 4]
            assert any("the table is read again" in str(line) for line in taken.lodged.log)

    def test_changes_that_are_gone_are_reported(self, service: _DynamoDb, tmp_path: Path) -> None:
        config = "aws_dynamodb_cdc: {tables: [a]}"
        with receiving(tmp_path, config) as taken:
            changes(taken, 4)
        service.trimmed = True
        with receiving(tmp_path, config) as taken:
            assert ids(changes(taken, 6))[4:] == [3, 4]
            assert any("The rest of new of a is lost" in str(line) for line in taken.lodged.log)

    def test_changes_of_before_a_time_are_left_out(self) -> None:
        source = built("input: {aws_dynamodb_cdc: {tables: [a]}}")
        streams = TableStreams(source._parsed, lambda stream, shard: None)
        records = [make_change(number, age_s) for number, age_s in ((1, 60), (2, 5), (3, 0))]
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        numbers = [streams.number_of(one) for one in streams.select(f"@{now_ms}", records)]
        assert numbers == ["2", "3"]
        assert list(streams.select("1", records)) == records and ENDED == "-"


@pytest.mark.parametrize(
    ("text", "tags", "matches"),
    [
        ("a:1", {"a": "1", "b": "2"}, True),
        (" a : 1 , 2 ; b:x ", {"a": "2", "b": "x"}, True),
        ("a:1;b:x", {"a": "1"}, False),
        ("a:b:c", {"a": "b:c"}, True),
    ],
)
def test_filters_of_tags(text: str, tags: Mapping[str, str], matches: bool) -> None:
    assert TagFilter.parse(text).matches(tags) is matches


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("tables: []", "expected names of tables"),
        ("table_discovery_mode: tag", "is needed where table_discovery_mode is tag"),
        ("tables: [a], table_tag_filter: a", "expected keys with their values"),
        ("tables: [a], table_tag_filter: 'a:1;a:2'", "the key 'a' twice"),
        ("tables: [a, b], snapshot_mode: snapshot_only", "needs one table in tables"),
        ("tables: [a], snapshot_segments: 11", "expected 1 to 10"),
        ("tables: [a], batch_size: 1001", "expected 1 to 1000"),
        ("tables: [a], snapshot_throttle: 0s", "expected more than 0s"),
    ],
)
def test_fields_that_cannot_work_are_refused(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"input: {{aws_dynamodb_cdc: {{{fields}}}}}")
