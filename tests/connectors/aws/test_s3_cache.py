"""The cache `aws_s3`, with a simulated S3."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import Kind
from tests.components.outputs.scripted import Seen
from tests.connectors.aws.test_s3 import make_bucket
from tests.servers.aws import Aws


def cache(fields: str) -> Any:
    config = parse_config(f"cache_resources: [{{label: c, aws_s3: {{{fields}}}}}]\n")
    return build_context(config.resources).resource(Kind.CACHE, "c")


@pytest.mark.slow
class TestCache:
    def test_a_value_is_kept_until_it_is_deleted(self, aws: Aws) -> None:
        fields = make_bucket(aws, "cached")
        of, ex = cache(f"{fields}, content_type: text/plain"), Seen().ex
        with pytest.raises(KeyNotFoundError):
            of.get("a/b", ex)
        of.set("a/b", b"1", None, ex)
        of.set("a/b", b"2", None, ex)
        assert of.get("a/b", ex) == b"2"
        found = aws.client("s3").get_object(Bucket="cached", Key="a/b")
        assert found["ContentType"] == "text/plain"
        with pytest.raises(KeyAlreadyExistsError):
            of.add("a/b", b"3", None, ex)
        of.delete("a/b", ex)
        of.delete("a/b", ex)
        of.add("a/b", b"4", None, ex)
        assert of.get("a/b", ex) == b"4"

    def test_a_bucket_that_is_not_there(self, aws: Aws) -> None:
        with pytest.raises(CacheError, match="NoSuchBucket"):
            cache(f"bucket: nowhere, {aws.fields}").set("a", b"1", None, Seen().ex)


def test_a_key_that_another_one_has_added_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = iter(("404", "PreconditionFailed"))

    def refuse(self: AwsClient, work: Any) -> Any:
        raise AwsError("no", next(codes))

    monkeypatch.setattr(AwsClient, "run", refuse)
    with pytest.raises(KeyAlreadyExistsError):
        cache("bucket: b").add("a", b"1", None, Seen().ex)


def test_a_request_is_repeated_while_the_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [AwsError("away"), AwsError("busy", "SlowDown"), b"1"]

    def answer(self: AwsClient, work: Any) -> Any:
        given = answers.pop(0)
        if isinstance(given, AwsError):
            raise given
        return given

    monkeypatch.setattr(AwsClient, "run", answer)
    ex = Seen().ex
    ex.sleep = lambda ns: None
    assert cache("bucket: b").get("a", ex) == b"1" and not answers
