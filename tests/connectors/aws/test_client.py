"""Clients of AWS: credentials, errors, and what a config that comes by API may use."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.connectors.aws.client import AwsClient, make_session
from streamer.connectors.aws.errors import AwsError, aws_errors
from streamer.connectors.aws.fields import SESSION_FIELDS
from streamer.core.permissions import NONE, NotPermittedError, limit_permissions
from tests.servers.aws import KEY, REGION, SECRET, Aws


def fields(text: str) -> Any:
    """Return the fields of an output with these of AWS."""
    from streamer.config import parse_config

    config = parse_config(f"output: {{aws_sqs: {{url: 'http://a/1/q', {text}}}}}")
    return config.output.config


@pytest.mark.slow
def test_a_role_is_assumed_by_the_credentials(aws: Aws) -> None:
    role = "arn:aws:iam::123456789012:role/reader"
    text = aws.fields.replace("}", f", role: '{role}', role_external_id: from me}}")
    client = AwsClient(fields(text), "sts")
    answer = client.run(lambda one: one.get_caller_identity())
    assert "assumed-role/reader" in answer["Arn"]
    own = AwsClient(fields(aws.fields), "sts").run(lambda one: one.get_caller_identity())
    assert "assumed-role" not in own["Arn"]


def test_fields_go_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from the environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    session = make_session(fields(""))
    assert session.get_credentials().access_key == "from the environment"
    assert session.region_name == "eu-north-1"
    text = f"region: {REGION}, credentials: {{id: {KEY}, secret: {SECRET}, token: t}}"
    session = make_session(fields(text))
    assert session.get_credentials().get_frozen_credentials() == (KEY, SECRET, "t", None)
    assert session.region_name == REGION


def test_a_config_that_comes_by_api_brings_its_own_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the machine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    own = f"credentials: {{id: {KEY}, secret: {SECRET}"
    with limit_permissions(NONE):
        allowed = fields(f"region: {REGION}, {own}}}")
        refused = [
            fields(text) for text in ("region: a", f"{own}}}", f"{own}, from_ec2_role: true}}")
        ]
        metadata = fields(f"region: a, endpoint: 'http://a', {own}}}")
    assert make_session(allowed).get_credentials().access_key == KEY
    for one in refused:
        with pytest.raises(NotPermittedError, match="out of reach for configs that come by API"):
            make_session(one)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: [(0, 0, 0, "", ("169.254.169.254", 80))])
    with pytest.raises(NotPermittedError, match=r"169\.254\.169\.254"):
        AwsClient(metadata, "sqs").run(lambda client: client)


@pytest.mark.parametrize(
    ("code", "refuses", "absent"),
    [
        ("InvalidClientTokenId", False, False),
        ("ThrottlingException", False, False),
        ("InvalidMessageContents", True, False),
        ("BatchRequestTooLong", True, False),
        ("ResourceNotFoundException", False, True),
    ],
)
def test_codes_of_services(code: str, refuses: bool, absent: bool) -> None:
    from botocore.exceptions import ClientError

    answer = {"Error": {"Code": code, "Message": "x" * 10_000}}
    with pytest.raises(AwsError) as caught, aws_errors():
        raise ClientError(answer, "SendMessage")
    error = caught.value
    assert str(error).startswith(f"{code}: xxx") and len(str(error)) == 500
    found = (error.is_content_refused, error.absent, error.is_connection_lost)
    assert found == (refuses, absent, False)


def test_a_value_that_cannot_be_sent_is_refused_for_its_content() -> None:
    text = f"region: {REGION}, credentials: {{id: {KEY}, secret: {SECRET}}}"
    client = AwsClient(fields(text), "sqs")
    with pytest.raises(AwsError, match="Invalid type") as caught:
        client.run(lambda one: one.send_message(QueueUrl=7, MessageBody="x"))
    assert caught.value.is_content_refused and not caught.value.is_connection_lost
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("name", "right"), [("\n", False), ("eu west", False), ("local", True)])
def test_a_region_that_no_host_can_have_is_named(name: str, right: bool) -> None:
    (region,) = (field for field in SESSION_FIELDS if field.name == "region")
    assert region.check is not None
    assert (region.check(name) is None) is right
