"""The input `aws_s3`, with a simulated S3."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import batches_of, built, planned, raws_of
from tests.connectors.aws.test_s3 import make_bucket
from tests.servers.aws import Aws

ALL = Limit()


def put(aws: Aws, bucket: str, **objects: bytes) -> None:
    client = aws.client("s3")
    for key, data in objects.items():
        client.put_object(Bucket=bucket, Key=key, Body=data)


def source(fields: str, more: str = "") -> Any:
    return built(f"input: {{aws_s3: {{{fields}{', ' if more else ''}{more}}}}}\n")


def everything(of: Any, limit: Limit = ALL, parts: int = 1) -> list[bytes]:
    found = []
    for start, latest in planned(of, limit):
        found += raws_of(of, start, latest.offset, parts)
        of.on_committed(latest.offset)
    return found


@pytest.mark.slow
def test_objects_come_in_the_order_of_their_keys_with_their_metadata(aws: Aws) -> None:
    fields = make_bucket(aws, "in-order")
    aws.client("s3").put_object(
        Bucket="in-order",
        Key="a/1 ü",
        Body=b"one",
        ContentType="text/plain",
        ContentEncoding="x",
        Metadata={"Who": "me"},
    )
    put(aws, "in-order", **{"a/2": b"two", "b": b"three", "a/0": b""})
    of = source(fields, "prefix: a/")
    [(start, latest), (_, end)] = planned(of, Limit())
    assert latest.waiting == 3 and end.is_ended and not latest.is_ended
    messages = [m for [m] in batches_of(of, start, latest.offset)]
    assert [m.raw for m in messages] == [b"", b"one", b"two"]
    meta = messages[1].meta
    assert meta["s3_last_modified"].endswith("Z") and meta["s3_last_modified_unix"] > 1_700_000_000
    assert {
        name: value for name, value in meta.items() if not name.startswith("s3_last_modified")
    } == {
        "s3_key": "a/1 ü",
        "s3_bucket": "in-order",
        "s3_content_type": "text/plain",
        "s3_content_encoding": "x",
        "who": "me",
    }
