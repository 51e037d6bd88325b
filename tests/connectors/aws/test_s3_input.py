"""The input `aws_s3`, with a simulated S3."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.notifications import NotificationPaths, parse_notification
from streamer.connectors.aws.s3_store import S3Store
from streamer.connectors.objects import object_pieces
from streamer.connectors.objects.store import ObjectPage, StoreError, StoreUnavailableError
from streamer.core.errors import ConfigError, MessageError
from streamer.core.message import Message
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.landing import receiving
from tests.components.inputs.reading import batches_of, built, planned, raws_of
from tests.components.inputs.rooms import lodging
from tests.connectors.aws.sending import send
from tests.connectors.aws.test_s3 import make_bucket
from tests.connectors.aws.test_sqs import left, make_queue
from tests.servers import lasting_port
from tests.servers.aws import Aws, aws_server

ALL = Limit()


def put(aws: Aws, bucket: str, objects: dict[str, bytes]) -> None:
    client = aws.client("s3")
    for key, data in objects.items():
        client.put_object(Bucket=bucket, Key=key, Body=data)


def keys(aws: Aws, bucket: str) -> list[str]:
    answer = aws.client("s3").list_objects_v2(Bucket=bucket)
    return [one["Key"] for one in answer.get("Contents", ())]


def source(fields: str, more: str = "") -> Any:
    return built(f"input: {{aws_s3: {{{fields}{', ' if more else ''}{more}}}}}\n")


def everything(of: Any, limit: Limit = ALL, parts: int = 2) -> list[bytes]:
    raws = []
    for start, latest in planned(of, limit):
        raws += raws_of(of, start, latest.offset, parts)
        of.on_committed(latest.offset)
    return raws


@pytest.mark.slow
class TestObjects:
    def test_objects_come_in_the_order_of_their_keys_with_their_metadata(self, aws: Aws) -> None:
        fields = make_bucket(aws, "in-order")
        aws.client("s3").put_object(
            Bucket="in-order",
            Key="a/1 ü",
            Body=b"one",
            ContentType="text/plain",
            ContentEncoding="x",
            Metadata={"Who": "me"},
        )
        put(aws, "in-order", {"a/2": b"two", "b": b"three", "a/0": b""})
        of = source(fields, "prefix: a/")
        assert of.probe() == "s3://in-order has objects, the first is 'a/0'"
        [(start, latest), (_, end)] = planned(of, ALL)
        assert latest.waiting == 3 and end.is_ended and not latest.is_ended
        messages = [one for [one] in batches_of(of, start, latest.offset)]
        assert [one.raw for one in messages] == [b"", b"one", b"two"]
        meta = dict(messages[1].meta)
        assert meta.pop("s3_last_modified").endswith("Z")
        assert meta.pop("s3_last_modified_unix") > 1_700_000_000
        assert meta == {
            "s3_key": "a/1 ü",
            "s3_bucket": "in-order",
            "s3_content_type": "text/plain",
            "s3_content_encoding": "x",
            "who": "me",
        }

    def test_ten_thousand_messages_of_packed_objects_on_several_pages(
        self, aws: Aws, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fields = make_bucket(aws, "many")
        expected = []
        for number in range(50):
            lines = [b"%d-%d" % (number, line) for line in range(200)]
            expected += lines
            put(aws, "many", {f"a{number:02}.gz": gzip.compress(b"\n".join(lines))})
        pages = []

        def list_short(self: S3Store, prefix: str, after: str, limit: int = 0) -> ObjectPage:
            pages.append(after)
            return list_page(self, prefix, after, 20)

        list_page = S3Store.list_page
        monkeypatch.setattr(S3Store, "list_page", list_short)
        scanner = "scanner: {decompress: {algorithm: gzip, into: {lines: {}}}}"
        assert everything(source(fields, scanner), Limit(3000)) == expected
        assert len(expected) == 10_000 and {"", "a19.gz", "a39.gz"} <= {*pages}

    def test_a_large_object_is_read_in_ranges_and_goes_on_where_a_micro_batch_has_ended(
        self, aws: Aws, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(object_pieces, "_MIN_RANGE_BYTES", 1 << 16)
        fields = make_bucket(aws, "large-object")
        lines = [b"%d %s" % (number, b"x" * (number % 90)) for number in range(50_000)]
        put(aws, "large-object", {"large": b"\n".join(lines)})
        of = source(fields, "scanner: {lines: {}}")
        batches = list(planned(of, Limit(size=1 << 20)))
        assert len(batches) >= 4
        start, latest = batches[1]
        assert len(of.split(start, latest.offset, 4)) >= 4
        raws = [raw for start, latest in batches for raw in raws_of(of, start, latest.offset, 4)]
        assert raws == lines

    def test_objects_are_deleted_or_tagged_when_they_are_safe(self, aws: Aws) -> None:
        fields = make_bucket(aws, "done")
        put(aws, "done", {"a": b"1", "b": b"2", "c": b"3"})
        aws.client("s3").put_object_tagging(
            Bucket="done", Key="c", Tagging={"TagSet": [{"Key": "k", "Value": "v"}]}
        )
        assert everything(source(fields, "prefix: c, tag_objects: {read: 'yes'}")) == [b"3"]
        tags = aws.client("s3").get_object_tagging(Bucket="done", Key="c")["TagSet"]
        assert {one["Key"]: one["Value"] for one in tags} == {"k": "v", "read": "yes"}
        assert everything(source(fields, "delete_objects: true")) == [b"1", b"2", b"3"]
        assert keys(aws, "done") == []

    def test_new_objects_are_noticed_wherever_their_keys_are(
        self, aws: Aws, tmp_path: Path
    ) -> None:
        fields = make_bucket(aws, "watched")
        put(aws, "watched", {"m": b"1"})
        watcher = "watcher: {enabled: true, poll_interval: 10ms, minimum_age: 0s}"
        with lodging(tmp_path) as lodged:
            of = open_input(source(fields, watcher), lodged.room)
        raws: list[bytes] = []
        at = of.initial_offset()

        def read_until(count: int) -> None:
            nonlocal at
            while len(raws) < count:
                end = of.latest_offset(at, time.time_ns(), ALL).offset
                raws.extend(raws_of(of, at, end))
                at = end

        read_until(1)
        put(aws, "watched", {"a": b"2", "z": b"3"})
        read_until(3)
        put(aws, "watched", {"m": b"4"})
        read_until(4)
        assert raws[0] == b"1" and sorted(raws[1:3]) == [b"2", b"3"] and raws[3] == b"4"

    def test_a_server_that_comes_back(self) -> None:
        port = lasting_port()
        aws = Aws(port)
        with aws_server(port):
            fields = make_bucket(aws, "back")
            put(aws, "back", {"a": b"1\n2\n", "b": b"3\n"})
            of = source(fields, "scanner: {lines: {}}")
            start = of.initial_offset()
            latest = of.latest_offset(start, 0, ALL)
        other = source(fields)
        with pytest.raises(StoreUnavailableError, match="failed to list objects of s3://back"):
            other.latest_offset(start, 0, ALL)
        with aws_server(port):
            assert raws_of(of, start, latest.offset) == [b"1", b"2", b"3"]
            assert len(everything(other)) == 2

    def test_a_bucket_that_is_not_there(self, aws: Aws) -> None:
        with pytest.raises(StoreError, match="s3://nowhere: NoSuchBucket") as error:
            source(f"bucket: nowhere, {aws.fields}").probe()
        assert not error.value.transient


def test_credentials_that_are_refused_stop_the_input_and_are_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: AwsClient, work: Any) -> Any:
        raise AwsError("AccessDenied: no", "AccessDenied")

    monkeypatch.setattr(AwsClient, "run", refuse)
    of = source("bucket: b, credentials: {id: x, secret: very-secret}")
    with pytest.raises(StoreError, match="failed to list objects of s3://b: AccessDenied") as error:
        of.latest_offset(of.initial_offset(), 0, ALL)
    assert not error.value.transient and "very-secret" not in str(error.value)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("prefix: x", "field bucket is empty; expected the name of a bucket, or a queue"),
        ("bucket: b, sqs: {url: x}", "'x'; expected a URL such as"),
        (
            "sqs: {url: 'http://x/y'}, watcher: {enabled: true}",
            "field watcher cannot stand beside sqs.url",
        ),
        (
            "bucket: b, delete_objects: true, tag_objects: {a: b}",
            "field tag_objects cannot stand beside delete_objects",
        ),
    ],
)
def test_fields_that_do_not_fit(fields: str, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        source(fields)
    assert text in str(error.value)


def notification(*objects: tuple[str, str]) -> str:
    return json.dumps(
        {
            "Records": [
                {"s3": {"bucket": {"name": bucket}, "object": {"key": key}}}
                for bucket, key in objects
            ]
        }
    )


PATHS = NotificationPaths("Records.*.s3.object.key", "Records.*.s3.bucket.name", "", "")


@pytest.mark.parametrize(
    ("text", "paths", "objects"),
    [
        (notification(("b", "a+1%C3%BC"), ("c", "d")), PATHS, [("b", "a 1ü"), ("c", "d")]),
        ('{"Event": "s3:TestEvent"}', PATHS, []),
        ('{"k": "x"}', PATHS._replace(key="k", default_bucket="b"), [("b", "x")]),
        (
            json.dumps({"Message": notification(("b", "x"))}),
            PATHS._replace(envelope="Message"),
            [("b", "x")],
        ),
    ],
)
def test_a_notification_names_objects(
    text: str, paths: NotificationPaths, objects: list[tuple[str, str]]
) -> None:
    assert parse_notification(text, paths) == objects


@pytest.mark.parametrize(
    ("text", "paths", "error"),
    [
        ("no", PATHS, "the message is not JSON"),
        ("{}", PATHS, "there is no key at key_path 'Records.*.s3.object.key'"),
        ('{"k": "x"}', PATHS._replace(key="k"), "there is no bucket at bucket_path"),
        ("{}", PATHS._replace(envelope="Message"), "there is no text at envelope_path 'Message'"),
    ],
)
def test_a_notification_without_objects_is_refused(
    text: str, paths: NotificationPaths, error: str
) -> None:
    with pytest.raises(MessageError, match=error.replace("*", r"\*")):
        parse_notification(text, paths)


@pytest.mark.slow
class TestQueue:
    def send_texts(self, aws: Aws, url: str, *texts: str) -> None:
        output = f"aws_sqs: {{url: '{url}', {aws.fields}}}"
        assert send(output, [Message(text.encode()) for text in texts]) is None

    def test_objects_of_notifications_are_read_and_deleted(self, aws: Aws, tmp_path: Path) -> None:
        make_bucket(aws, "one")
        make_bucket(aws, "two")
        put(aws, "one", {"a b": b"1\n2", "c": b"3"})
        put(aws, "two", {"d": b"4"})
        url = make_queue(aws, "notified")
        self.send_texts(
            aws,
            url,
            '{"Event": "s3:TestEvent"}',
            notification(("one", "a+b"), ("two", "d")),
            "not JSON",
            notification(("one", "gone")),
            notification(("one", "c")),
        )
        more = "delete_objects: true, scanner: {lines: {}}"
        queue = f"sqs: {{url: '{url}', nack_visibility_timeout: 600}}"
        with receiving(tmp_path, f"aws_s3: {{{aws.fields}, {more}, {queue}}}") as taken:
            assert sorted(taken.raws(4)) == ["1", "2", "3", "4"]
            # The message that names no objects is not visible for a while.
            taken.until(lambda _: left(aws, url) == (0, 1))
            [error] = [text for level, text in taken.lodged.log if level == "ERROR"]
            assert "Failed to read a message of the queue: the message is not JSON" in error
            of = taken._source
            of.on_committed(taken._at)
        assert keys(aws, "one") == [] and keys(aws, "two") == []

    def test_a_notification_is_taken_when_it_is_old_enough(self, aws: Aws, tmp_path: Path) -> None:
        make_bucket(aws, "late")
        url = make_queue(aws, "delayed")
        self.send_texts(aws, url, notification(("late", "x")))
        queue = f"sqs: {{url: '{url}', delay_period: 1500ms}}"
        with receiving(tmp_path, f"aws_s3: {{{aws.fields}, {queue}}}") as taken:
            taken.until(lambda _: left(aws, url) == (0, 1))
            put(aws, "late", {"x": b"in time"})
            assert taken.raws(1) == ["in time"]
            taken.until(lambda _: left(aws, url) == (0, 0))
