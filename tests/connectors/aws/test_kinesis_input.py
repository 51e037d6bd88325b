"""The input `aws_kinesis`: the order of shards, and their positions, with a simulated Kinesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.streams import ENDED, Shard, ShardPositions, parse_streams
from streamer.core.errors import ConfigError
from tests.components.inputs.landing import receiving
from tests.components.inputs.reading import built
from tests.servers import lasting_port
from tests.servers.aws import Aws, aws_server


def put(aws: Aws, stream: str, numbers: range, keys: int = 7) -> None:
    """Send numbers as records, each by a key that its remainder gives."""
    client = aws.client("kinesis")
    for at in range(numbers.start, numbers.stop, 500):
        some = range(at, min(at + 500, numbers.stop))
        records = [{"Data": b"%d" % n, "PartitionKey": f"{n % keys}"} for n in some]
        assert client.put_records(StreamName=stream, Records=records)["FailedRecordCount"] == 0


@pytest.mark.slow
class TestStream:
    def test_ten_thousand_records_are_read_once_over_two_starts(
        self, aws: Aws, tmp_path: Path
    ) -> None:
        aws.client("kinesis").create_stream(StreamName="read", ShardCount=3)
        put(aws, "read", range(6_000))
        config = f"aws_kinesis: {{streams: [read], {aws.fields}}}"
        with receiving(tmp_path, config) as taken:
            assert sorted(map(int, taken.raws(6_000))) == list(range(6_000))
        put(aws, "read", range(6_000, 10_000))
        with receiving(tmp_path, config) as taken:
            assert sorted(map(int, taken.raws(10_000))) == list(range(10_000))
            put(aws, "read", range(10_000, 10_001))
            assert taken.raws(10_001)[-1] == "10000"
        meta = dict(taken.messages[-1].meta)
        assert meta.pop("kinesis_sequence_number") and meta.pop("kinesis_shard")
        assert meta == {"kinesis_stream": "read", "kinesis_partition_key": f"{10_000 % 7}"}
        for key in range(7):
            of_key = [
                int(one.raw)
                for one in taken.messages
                if one.meta["kinesis_partition_key"] == f"{key}"
            ]
            assert of_key == sorted(of_key)

    def test_shards_that_are_split_and_merged(self, aws: Aws, tmp_path: Path) -> None:
        client = aws.client("kinesis")
        client.create_stream(StreamName="cut", ShardCount=1)
        put(aws, "cut", range(100))
        middle = f"{2**127}"
        client.split_shard(
            StreamName="cut", ShardToSplit="shardId-000000000000", NewStartingHashKey=middle
        )
        put(aws, "cut", range(100, 200))
        config = f"aws_kinesis: {{streams: [cut], {aws.fields}}}"
        with receiving(tmp_path, config) as taken:
            taken.raws(200)
            client.merge_shards(
                StreamName="cut",
                ShardToMerge="shardId-000000000001",
                AdjacentShardToMerge="shardId-000000000002",
            )
            put(aws, "cut", range(200, 300))
            assert sorted(map(int, taken.raws(300))) == list(range(300))
        for key in range(7):
            of_key = [int(one.raw) for one in taken.messages if int(one.raw) % 7 == key]
            assert of_key == sorted(of_key)

    def test_a_stream_from_now_on_misses_nothing_at_its_second_start(
        self, aws: Aws, tmp_path: Path
    ) -> None:
        aws.client("kinesis").create_stream(StreamName="late", ShardCount=1)
        put(aws, "late", range(3))
        config = f"aws_kinesis: {{streams: [late], start_from_oldest: false, {aws.fields}}}"
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_up")
        put(aws, "late", range(3, 6))
        with receiving(tmp_path, config) as taken:
            assert taken.raws(3) == ["3", "4", "5"]

    def test_a_server_that_comes_back(self, tmp_path: Path) -> None:
        port = lasting_port()
        aws = Aws(port)
        with receiving(tmp_path, f"aws_kinesis: {{streams: ['back:0'], {aws.fields}}}") as taken:
            with aws_server(port):
                aws.client("kinesis").create_stream(StreamName="back", ShardCount=1)
                put(aws, "back", range(2))
                assert taken.raws(2) == ["0", "1"]
            taken.counted("input_connection_lost")
            with aws_server(port):
                put(aws, "back", range(2, 4))
                assert taken.raws(4) == ["0", "1", "2", "3"]

    def test_a_stream_that_is_not_there(self, aws: Aws) -> None:
        with pytest.raises(AwsError, match="nowhere"):
            built(f"input: {{aws_kinesis: {{streams: [nowhere], {aws.fields}}}}}").probe()


class TestPositions:
    def test_children_come_after_their_parents(self) -> None:
        shards = [Shard("a"), Shard("b"), Shard("ab", ("a", "b")), Shard("c", ("gone",))]
        positions = ShardPositions({})
        assert positions.update(shards, None) == []
        assert positions.list_readable() == ["a", "b", "c"]
        positions.positions["a"] = ENDED
        assert positions.list_readable() == ["b", "c"]
        positions.positions["b"] = ENDED
        assert positions.list_readable() == ["ab", "c"]

    def test_a_stream_that_is_known_begins_new_shards_at_their_oldest_record(self) -> None:
        positions = ShardPositions({})
        positions.update([Shard("a")], 7_000)
        assert positions.positions == {"a": "@7000"}
        positions.update([Shard("a"), Shard("b", ("a",))], 9_000)
        assert positions.positions == {"a": "@7000", "b": ""}

    def test_shards_that_kinesis_keeps_no_more(self) -> None:
        positions = ShardPositions({"read": ENDED, "unread": "17", "a": "18"})
        assert positions.update([Shard("a")], None) == ["unread"]
        assert positions.positions == {"a": "18"}

    def test_only_the_shards_that_are_named(self) -> None:
        positions = ShardPositions({}, {"b"})
        positions.update([Shard("a"), Shard("b", ("a",))], None)
        assert positions.list_readable() == ["b"]


def test_names_of_streams() -> None:
    arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/c"
    assert parse_streams(["a, b:0", "b:x", f"{arn}:2"]) == {
        "a": frozenset(),
        "b": {"shardId-000000000000", "x"},
        arn: {"shardId-000000000002"},
    }


class _Kinesis:
    """A shard whose iterator expires, and which is throttled once."""

    def __init__(self) -> None:
        self.codes = ["ExpiredIteratorException", "ProvisionedThroughputExceededException"]
        self.iterators: list[dict[str, Any]] = []

    def list_shards(self, **_: Any) -> Any:
        return {"Shards": [{"ShardId": "a"}]}

    def get_shard_iterator(self, **given: Any) -> Any:
        self.iterators.append(given)
        return {"ShardIterator": given.get("StartingSequenceNumber", "0")}

    def get_records(self, ShardIterator: str, **_: Any) -> Any:  # noqa: N803
        at = int(ShardIterator)
        if at == 2 and self.codes:
            raise AwsError("no", self.codes.pop(0))
        records = [{"Data": b"%d" % at, "SequenceNumber": f"{at + 1}"}] if at < 4 else []
        return {"Records": records, "NextShardIterator": f"{at + 1}", "MillisBehindLatest": 1}

    def close(self) -> None:
        pass


def test_an_iterator_that_has_expired_is_made_again_behind_the_last_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = _Kinesis()
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(service))
    with receiving(tmp_path, "aws_kinesis: {streams: [a]}") as taken:
        assert taken.raws(4) == ["0", "1", "2", "3"]
    types = [
        (one["ShardIteratorType"], one.get("StartingSequenceNumber")) for one in service.iterators
    ]
    assert types == [("TRIM_HORIZON", None), *[("AFTER_SEQUENCE_NUMBER", "2")] * 2]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("streams: []", "is an empty list; expected a name or an ARN"),
        ("streams: ['a:0:1']", "expected a name or an ARN, such as foo, or foo:0"),
        ("streams: [a], dynamodb: {credentials: {id: x}}", "id and secret need each other"),
        ("streams: [a], batching: {count: -1}", "expected 0"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"input: {{aws_kinesis: {{{fields}}}}}")
