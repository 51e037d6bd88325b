"""`gcp_pubsub`, with a stand-in for the API."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.outputs.scripted import Seen, built
from tests.servers import lasting_port
from tests.servers.http import Asked, Reply, http_server
from tests.servers.pubsub import Pubsub, pubsub_server


@pytest.fixture
def pubsub() -> Iterator[Pubsub]:
    with pubsub_server() as running:
        running.subscribe("s", "t")
        yield running


def config_of(pubsub: Pubsub, fields: str) -> str:
    return f"gcp_pubsub: {{project: p, endpoint: '{pubsub.url}', {fields}}}"


def send(pubsub: Pubsub, fields: str, *batch: Message) -> SendError | None:
    [error] = built(config_of(pubsub, fields)).deliver([[*batch]], Seen().ex).errors
    return error


def reasons(error: SendError | None) -> dict[int, Reason | None]:
    if error is None:
        return {}
    return {
        index: text.reason if isinstance(text, Rejection) else None
        for index, text in error.errors.items()
    }


class TestOutput:
    def test_metadata_become_attributes(self, pubsub: Pubsub) -> None:
        fields = "topic: t, ordering_key: '${! @k }', metadata: {exclude_prefixes: [no_]}"
        assert send(pubsub, fields, Message(b"a\xff", {"k": "u", "n": 1, "no_x": 1})) is None
        [made] = pubsub.topics["t"]
        assert base64.b64decode(made["data"]) == b"a\xff"
        assert (made["attributes"], made["orderingKey"]) == ({"k": "u", "n": "1"}, "u")

    def test_a_bad_message_is_rejected_alone(self, pubsub: Pubsub) -> None:
        batch = [Message(b"" if n in (2, 6) else b"x") for n in range(9)]
        assert reasons(send(pubsub, "topic: t", *batch)) == dict.fromkeys((2, 6), Reason.REFUSED)
        assert len(pubsub.topics["t"]) == 7

    def test_messages_name_their_topics(self, pubsub: Pubsub) -> None:
        pubsub.topics["other"] = []
        batch = [Message(b"x", {"t": t}) for t in ("t", "other", "nowhere", "t", "")]
        error = send(pubsub, "topic: '${! @t }'", *batch)
        assert reasons(error) == {2: Reason.REFUSED, 4: Reason.INVALID}
        assert (len(pubsub.topics["t"]), len(pubsub.topics["other"])) == (2, 1)

    def test_requests_have_a_size(self, pubsub: Pubsub) -> None:
        batch = [Message(b"x" * 400) for _ in range(10)]
        assert send(pubsub, "topic: t, count_threshold: 4", *batch) is None
        assert send(pubsub, "topic: t, byte_threshold: 1200", *batch) is None
        assert pubsub.requests == [4, 4, 2, *[2] * 5]

    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (Reply(503, b'{"error": {"status": "UNAVAILABLE", "message": "later"}}'), "later"),
            (Reply(200, b"<html>"), "none of Pub/Sub"),
            (Reply(200, b'{"messageIds": ["1"]}'), "an id for each message"),
            (Reply(404, b"nothing"), "404: nothing"),
        ],
    )
    def test_an_outage_fails_all(self, pubsub: Pubsub, reply: Reply, words: str) -> None:
        pubsub.answers.append(reply)
        error = send(pubsub, "topic: t", Message(b"a"), Message(b"b"))
        assert error is not None and words in str(error)
        assert not error.is_rejected and not error.errors

    def test_probes(self, pubsub: Pubsub) -> None:
        assert built(config_of(pubsub, "topic: t")).probe() == "the topic is there"
        with pytest.raises(StreamerError, match="NOT_FOUND: no topic nowhere"):
            built(config_of(pubsub, "topic: nowhere")).probe()


@pytest.mark.slow
class TestInput:
    def test_ten_thousand_messages_come_once(self, pubsub: Pubsub, tmp_path: Path) -> None:
        batch = [Message(f"{n}".encode(), {"n": n}) for n in range(10_000)]
        assert send(pubsub, "topic: t, count_threshold: 1000", *batch) is None
        with receiving(tmp_path, config_of(pubsub, "subscription: s")) as taken:
            assert taken.raws(10_000) == [str(n) for n in range(10_000)]
            assert send(pubsub, "topic: t, ordering_key: o", Message(b"new")) is None
            assert taken.raws(10_001)[-1] == "new"
            taken.until(lambda _: not pubsub.waiting["s"])
        assert dict(taken.messages[1].meta) == {
            "n": "1",
            "gcp_pubsub_message_id": "1",
            "gcp_pubsub_publish_time_unix": "1767323045",
        }
        assert taken.messages[-1].meta["gcp_pubsub_ordering_key"] == "o"

    def test_a_subscription_is_created(self, pubsub: Pubsub, tmp_path: Path) -> None:
        fields = "subscription: new, create_subscription: {enabled: true, topic: t}"
        for directory in ("a", "b"):
            with receiving(tmp_path / directory, config_of(pubsub, fields)) as taken:
                taken.counted("input_connection_up")
                assert send(pubsub, "topic: t", Message(b"x")) is None
                assert taken.raws(1) == ["x"]

    def test_a_service_that_comes_back(self, tmp_path: Path) -> None:
        port, state = lasting_port(), Pubsub()
        state.subscribe("s", "t")
        with pubsub_server(state, port) as running:
            config = config_of(running, "subscription: s")
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_failed")
            with pubsub_server(state, port) as running:
                taken.counted("input_connection_up")
                assert send(running, "topic: t", Message(b"a")) is None
                assert taken.raws(1) == ["a"]
                # What it does not understand, it does not acknowledge.
                running.answers.append(Reply(200, b'{"receivedMessages": [{"ackId": "x"}]}'))
                taken.counted("input_connection_lost")
                taken.counted("input_connection_up", 2)
            taken.counted("input_connection_lost", 2)

    def test_a_subscription_that_is_not_there(self, pubsub: Pubsub, tmp_path: Path) -> None:
        config = config_of(pubsub, "subscription: nowhere")
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_failed")
        assert any("no subscription nowhere" in str(line) for line in taken.lodged.log)


def make_key() -> tuple[str, Any]:
    """Return a private key as text, and its public one."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65_537, 2_048)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return text.decode(), key.public_key()


def test_tokens_are_fetched_by_the_key_of_a_service_account() -> None:
    import jwt

    from streamer.connectors.google.credentials import TokenSource
    from streamer.connectors.http_client.errors import HttpError
    from streamer.sdk.spec import ParsedFields

    text, public = make_key()

    def answer(asked: Asked) -> Reply:
        [assertion] = [
            pair.partition(b"=")[2]
            for pair in asked.body.split(b"&")
            if pair.startswith(b"assertion=")
        ]
        claims = jwt.decode(assertion, public, ["RS256"], options={"verify_aud": False})
        if claims["iss"] != "me@p.iam":
            return Reply(400, b'{"error": "invalid_grant", "error_description": "who?"}')
        return Reply(200, b'{"access_token": "tok", "expires_in": 3600}')

    with http_server(answer) as server:
        info = {
            **{"type": "service_account", "client_email": "me@p.iam", "private_key": text},
            "token_uri": server.url,
        }
        source = TokenSource(ParsedFields({"credentials_json": json.dumps(info)}))
        assert source.header() == source.header() == ("Authorization", "Bearer tok")
        assert len(server.asked) == 1
        info["client_email"] = "you@p.iam"
        wrong = TokenSource(ParsedFields({"credentials_json": json.dumps(info)}))
        with pytest.raises(HttpError, match="no token of Google") as caught:
            wrong.header()
        assert "PRIVATE" not in str(caught.value)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("output: {gcp_pubsub: {project: p, topic: t, credentials_json: x}}", "is no JSON object"),
        (
            "output: {gcp_pubsub: {project: p, topic: t, credentials_json: "
            '\'{"type": "external_account"}\'}}',
            "is of the type 'external_account'; expected",
        ),
        ("output: {gcp_pubsub: {project: p, topic: t, endpoint: 'ftp://x'}}", "no host of HTTP"),
        (
            "input: {gcp_pubsub: {project: p, subscription: s, "
            "create_subscription: {enabled: true}}}",
            "expected the topic of the subscription",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(config: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(config + "\n")
