"""The outputs `aws_sns`, `aws_kinesis` and `aws_kinesis_firehose`, with a simulated AWS."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason
from tests.components.outputs.scripted import built
from tests.connectors.aws.sending import send
from tests.servers.aws import Aws


def read_records(aws: Aws, stream: str) -> list[Any]:
    """Return all records of a stream, shard by shard."""
    client, records = aws.client("kinesis"), []
    for shard in client.list_shards(StreamName=stream)["Shards"]:
        iterator = client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while found := client.get_records(ShardIterator=iterator, Limit=10_000):
            records += found["Records"]
            iterator = found["NextShardIterator"]
            if not found["Records"]:
                break
    return records


@pytest.mark.slow
class TestSns:
    def test_what_is_published_comes_to_who_subscribes(self, aws: Aws) -> None:
        topic = aws.client("sns").create_topic(Name="news")["TopicArn"]
        queue = aws.client("sqs").create_queue(QueueName="readers")["QueueUrl"]
        arn = "arn:aws:sqs:eu-west-1:123456789012:readers"
        aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        fields = "subject: 'on ${! @k }', metadata: {exclude_prefixes: [x_]}"
        batch = [Message(f"{n}".encode(), {"k": "v", "x_no": 1}) for n in range(11)]
        batch.insert(5, Message(b""))
        error = send(f"aws_sns: {{topic_arn: '{topic}', {aws.fields}, {fields}}}", batch)
        assert error.is_rejected and [*error.errors] == [5]
        taken = []
        while found := aws.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10):
            if not found.get("Messages"):
                break
            taken += [json.loads(one["Body"]) for one in found["Messages"]]
        assert sorted(int(one["Message"]) for one in taken) == list(range(11))
        attributes = {"k": {"Type": "String", "Value": "v"}}
        assert taken[0]["Subject"] == "on v" and taken[0]["MessageAttributes"] == attributes

    def test_a_topic_that_is_not_there(self, aws: Aws) -> None:
        arn = "arn:aws:sns:eu-west-1:123456789012:nowhere"
        with pytest.raises(AwsError, match="NotFound") as caught:
            built(f"aws_sns: {{topic_arn: '{arn}', {aws.fields}}}").probe()
        assert caught.value.absent


@pytest.mark.slow
class TestKinesis:
    def test_ten_thousand_records(self, aws: Aws) -> None:
        client = aws.client("kinesis")
        client.create_stream(StreamName="many", ShardCount=3)
        output = f"aws_kinesis: {{stream: many, partition_key: '${{! @k }}', {aws.fields}}}"
        batch = [Message(f"{n}".encode(), {"k": n % 7}) for n in range(10_000)]
        assert send(output, batch) is None
        records = read_records(aws, "many")
        assert sorted(int(one["Data"]) for one in records) == list(range(10_000))
        assert {one["PartitionKey"] for one in records} == set("0123456")
        arn = client.describe_stream_summary(StreamName="many")
        arn = arn["StreamDescriptionSummary"]["StreamARN"]
        hashed = f"aws_kinesis: {{stream: '{arn}', partition_key: a, hash_key: '0', {aws.fields}}}"
        assert built(hashed).probe() == "the stream is active"
        assert send(hashed, [Message(b"last")]) is None

    def test_a_bad_record_fails_alone(self, aws: Aws) -> None:
        aws.client("kinesis").create_stream(StreamName="bad", ShardCount=1)
        output = f"aws_kinesis: {{stream: bad, partition_key: '${{! @k }}', {aws.fields}}}"
        keys = ("a", "", "b", "c")
        raws = (b"0", b"1", b"x" * (11 << 20), b"3")
        batch = [Message(raw, {"k": key}) for raw, key in zip(raws, keys, strict=True)]
        batch.append(Message(b"y" * 1_100_000, {"k": "d"}))
        error = send(output, batch)
        reasons = {index: text.reason for index, text in error.errors.items()}
        assert error.is_rejected
        assert reasons == {1: Reason.INVALID, 2: Reason.TOO_LARGE, 4: Reason.REFUSED}
        assert [one["Data"] for one in read_records(aws, "bad")] == [b"0", b"3"]


@pytest.mark.slow
def test_a_delivery_stream_writes_what_is_sent(aws: Aws) -> None:
    place = {"LocationConstraint": "eu-west-1"}
    aws.client("s3").create_bucket(Bucket="delivered", CreateBucketConfiguration=place)
    aws.client("firehose").create_delivery_stream(
        DeliveryStreamName="lake",
        ExtendedS3DestinationConfiguration={
            "RoleARN": "arn:aws:iam::123456789012:role/x",
            "BucketARN": "arn:aws:s3:::delivered",
        },
    )
    output = f"aws_kinesis_firehose: {{stream: lake, {aws.fields}}}"
    batch = [Message(f"{n}\n".encode()) for n in range(1_200)]
    batch.insert(7, Message(b"x" * (1001 << 10)))
    error = send(output, batch)
    assert [*error.errors] == [7] and error.errors[7].reason == Reason.TOO_LARGE
    client, texts = aws.client("s3"), []
    for one in client.list_objects_v2(Bucket="delivered")["Contents"]:
        texts.append(client.get_object(Bucket="delivered", Key=one["Key"])["Body"].read().decode())
    assert sorted(map(int, "".join(texts).split())) == list(range(1_200))
    assert built(output).probe() == "the delivery stream is active"


class _Throttled:
    """A stream of Kinesis that takes every second record of a request."""

    def __init__(self) -> None:
        self.requests: list[list[bytes]] = []

    def describe_stream_summary(self, **_: Any) -> Any:
        return {"StreamDescriptionSummary": {"StreamStatus": "ACTIVE"}}

    def put_records(self, Records: Any, **_: Any) -> Any:  # noqa: N803
        self.requests.append([one["Data"] for one in Records])
        refused = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow"}
        return {"Records": [refused if place % 2 else {} for place in range(len(Records))]}


def test_what_is_throttled_is_sent_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    service = _Throttled()
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(service))
    batch = [Message(b"%d" % n) for n in range(5)]
    assert send("aws_kinesis: {stream: a, partition_key: b}", batch) is None
    assert service.requests == [[b"0", b"1", b"2", b"3", b"4"], [b"1", b"3"], [b"3"]]
