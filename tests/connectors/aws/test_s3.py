"""The output `aws_s3`, with a simulated S3."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason
from tests.components.outputs.scripted import built
from tests.connectors.aws.sending import send
from tests.servers.aws import REGION, Aws


def make_bucket(aws: Aws, name: str) -> str:
    aws.client("s3").create_bucket(
        Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    return f"bucket: {name}, {aws.fields}"


def read(aws: Aws, bucket: str, key: str) -> Any:
    return aws.client("s3").get_object(Bucket=bucket, Key=key)


@pytest.mark.slow
class TestObjects:
    def test_a_message_is_an_object_with_all_that_goes_with_it(self, aws: Aws) -> None:
        fields = make_bucket(aws, "objects")
        more = (
            "path: 'a/${! @k }.json', content_type: application/json, cache_control: no-cache, "
            "content_language: '${! @k }', tags: {b: '${! @k } +', a: x}, "
            "storage_class: STANDARD_IA, metadata: {exclude_prefixes: [x_]}"
        )
        meta = {"k": "v", "x_no": 1, "umlaut": "ä", "not a name": "x", "n": 7}
        assert send(f"aws_s3: {{{fields}, {more}}}", [Message(b'{"id":1}', meta)]) is None
        found = read(aws, "objects", "a/v.json")
        assert found["Body"].read() == b'{"id":1}'
        names = ("ContentType", "CacheControl", "ContentLanguage", "StorageClass", "Metadata")
        assert [found[name] for name in names] == [
            "application/json",
            "no-cache",
            "v",
            "STANDARD_IA",
            {"k": "v", "umlaut": "=?UTF-8?B?w6Q=?=", "n": "7"},
        ]
        tags = aws.client("s3").get_object_tagging(Bucket="objects", Key="a/v.json")["TagSet"]
        assert tags == [{"Key": "a", "Value": "x"}, {"Key": "b", "Value": "v +"}]

    @pytest.mark.parametrize("algorithm", ["", "CRC32C", "SHA256"])
    def test_a_large_message_is_uploaded_in_parts(self, aws: Aws, algorithm: str) -> None:
        bucket = f"large{algorithm.lower()}"
        fields = make_bucket(aws, bucket)
        yaml = f"aws_s3: {{{fields}, path: '${{! @k }}', checksum_algorithm: '{algorithm}'}}"
        data = bytes(range(256)) * (17 << 12)
        batch = [Message(data, {"k": "large"}), Message(b"small", {"k": "small"})]
        assert send(yaml, batch) is None
        found = read(aws, bucket, "large")
        assert found["ETag"].endswith('-2"') and found["Body"].read() == data
        assert read(aws, bucket, "small")["Body"].read() == b"small"
        left = aws.client("s3").list_multipart_uploads(Bucket=bucket)
        assert not left.get("Uploads")

    def test_a_batch_is_one_archive(self, aws: Aws) -> None:
        fields = make_bucket(aws, "joined")
        batching = "batching: {count: 3, processors: [{archive: {format: lines}}]}"
        yaml = f"aws_s3: {{{fields}, path: all, {batching}}}"
        assert send(yaml, [Message(b"a"), Message(b"b"), Message(b"c")]) is None
        assert read(aws, "joined", "all")["Body"].read() == b"a\nb\nc"

    def test_a_message_without_a_key_fails_alone(self, aws: Aws) -> None:
        fields = make_bucket(aws, "keys")
        keys = ("a", "", "x" * 1025, "d")
        batch = [Message(b"1", {"k": key}) for key in keys]
        error = send(f"aws_s3: {{{fields}, path: '${{! @k }}'}}", batch)
        assert {index: text.reason for index, text in error.errors.items()} == {
            1: Reason.INVALID,
            2: Reason.INVALID,
        }
        assert read(aws, "keys", "d")["Body"].read() == b"1"

    def test_a_bucket_that_is_not_there(self, aws: Aws) -> None:
        output = built(f"aws_s3: {{bucket: nowhere, {aws.fields}}}")
        with pytest.raises(AwsError, match="there is no bucket 'nowhere'"):
            output.probe()


class _Bucket:
    """A bucket that does what it is told with the objects that are named."""

    def __init__(self, **codes: str) -> None:
        self.codes = codes
        self.keys: list[str] = []

    def _take(self, key: str) -> None:
        self.keys.append(key)
        if key in self.codes:
            raise AwsError("no", self.codes[key])

    def put_object(self, Key: str, **_: Any) -> None:  # noqa: N803
        self._take(Key)

    def create_multipart_upload(self, Key: str, **_: Any) -> Any:  # noqa: N803
        return {"UploadId": Key}

    def upload_part(self, PartNumber: int, **_: Any) -> Any:  # noqa: N803
        self._take(f"part{PartNumber}")
        return {"ETag": "x"}

    def abort_multipart_upload(self, UploadId: str, **_: Any) -> None:  # noqa: N803
        self.keys.append(f"abort {UploadId}")


def send_to(bucket: _Bucket, monkeypatch: pytest.MonkeyPatch, *batch: Message) -> Any:
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(bucket))
    return send("aws_s3: {bucket: b, path: '${! @k }'}", list(batch))


def test_what_comes_behind_a_failure_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = _Bucket(b="MetadataTooLarge", c="SlowDown")
    error = send_to(bucket, monkeypatch, *(Message(b"x", {"k": key}) for key in "abcd"))
    assert bucket.keys == ["a", "b", "c"]
    assert [*error.errors] == [1, 2, 3] and not error.is_rejected
    assert error.errors[1].reason == Reason.TOO_LARGE


def test_an_upload_that_fails_leaves_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = _Bucket(part2="SlowDown")
    error = send_to(bucket, monkeypatch, Message(b"x" * (17 << 20), {"k": "large"}))
    assert bucket.keys == ["part1", "part2", "abort large"]
    assert error.by_index(1) == {0: "no"}
