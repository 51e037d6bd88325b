"""Components of AWS with a key that the service does not know: they say so, and show no secret."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from streamer.core.errors import StreamerError
from streamer.core.message import Message
from tests.components.inputs import reading
from tests.components.outputs.scripted import built
from tests.connectors.aws.sending import process, send
from tests.servers.aws import SECRET, Aws

_ARN = "arn:aws:sns:eu-west-1:123456789012:topic"
_REFUSALS = (
    "InvalidClientTokenId|UnrecognizedClient|AccessDenied|InvalidAccessKeyId|AuthFailure|"
    "403: Forbidden"
)


@pytest.fixture
def strict(aws: Aws) -> Iterator[Aws]:
    """Return an AWS that knows no user, and knows all again at the end."""

    def check_from(actions: str) -> None:
        request = urllib.request.Request(
            f"{aws.url}/moto-api/reset-auth",
            actions.encode(),
            {"Content-Type": "text/plain"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200

    check_from("0")
    try:
        yield aws
    finally:
        check_from("inf")


_OUTPUTS = {
    "aws_sqs": "url: '{url}/123456789012/q'",
    "aws_sns": f"topic_arn: '{_ARN}'",
    "aws_kinesis": "stream: s, partition_key: k",
    "aws_kinesis_firehose": "stream: s",
    "aws_dynamodb": "table: t, string_columns: {id: '1'}",
    "aws_s3": "bucket: b, path: p",
}


@pytest.mark.parametrize("name", _OUTPUTS)
def test_an_output_says_so(strict: Aws, name: str) -> None:
    fields = _OUTPUTS[name].replace("{url}", strict.url)
    config = f"{name}: {{{fields}, {strict.fields}}}"
    with pytest.raises(StreamerError, match=_REFUSALS) as caught:
        built(config).probe()
    assert SECRET not in str(caught.value)


_INPUTS = {
    "aws_sqs": "url: '{url}/123456789012/q'",
    "aws_kinesis": "streams: [s]",
    "aws_dynamodb_cdc": "tables: [t]",
    "aws_cloudwatch_logs": "log_group_name: g",
    "aws_s3": "bucket: b",
}


@pytest.mark.parametrize("name", _INPUTS)
def test_an_input_says_so(strict: Aws, name: str) -> None:
    fields = _INPUTS[name].replace("{url}", strict.url)
    source = reading.built(f"input: {{{name}: {{{fields}, {strict.fields}}}}}")
    with pytest.raises(StreamerError, match=_REFUSALS) as caught:
        source.probe()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "config",
    [
        "aws_lambda: {{function: f, retries: 0, {fields}}}",
        "aws_dynamodb_partiql: {{query: 'SELECT * FROM t', {fields}}}",
    ],
)
def test_a_processor_marks_its_messages(strict: Aws, config: str) -> None:
    [message] = process(config.format(fields=strict.fields), Message(b"{}"))
    assert message.error is not None and SECRET not in str(message.error)
    assert message.raw == b"{}"


def test_all_is_as_before(aws: Aws) -> None:
    aws.client("sqs").create_queue(QueueName="after")
    queue = f"aws_sqs: {{url: '{aws.url}/123456789012/after', {aws.fields}}}"
    assert send(queue, [Message(b"a")]) is None
