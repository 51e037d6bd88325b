"""Outputs are let in by every way that the config can describe, and need no right beyond theirs."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.core.execution import MicroBatch
from streamer.sdk.output.protocols import SendAbortedError
from tests.components.outputs.scripted import Seen, batches, built
from tests.servers.kafka.secured import KEY_PASSWORD, LISTENERS, PASSWORDS, Secured

pytestmark = pytest.mark.slow

_NUMBERS = itertools.count()


def _topic(secured: Secured) -> str:
    return secured.kafka.create(f"secured-{next(_NUMBERS)}")


def _output(
    secured: Secured,
    listener: str,
    topic: str,
    mechanism: str = "",
    user: str = "alice",
    **more: Any,
) -> Any:
    fields: dict[str, Any] = {
        "seed_brokers": [secured.broker.address(listener)],
        "topic": topic,
        "record_delivery_timeout": "60s",
        **more,
    }
    if LISTENERS[listener].endswith("SSL"):
        fields["tls"] = {"enabled": True, "root_cas_file": str(secured.authority)}
    if listener == "MUTUAL":
        shown = {"cert_file": str(secured.certificate), "key_file": str(secured.encrypted_key)}
        fields["tls"]["client_certs"] = [{**shown, "password": KEY_PASSWORD}]
    if mechanism == "OAUTHBEARER":
        fields["sasl"] = [{"mechanism": mechanism, "token": secured.token(user)}]
    elif mechanism:
        who = {"username": user, "password": PASSWORDS[user]}
        fields["sasl"] = [{"mechanism": mechanism, **who}]
    return built(f"redpanda: {json.dumps(fields)}")


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("TLS", ""),
        ("MUTUAL", ""),
        ("SASL", "SCRAM-SHA-256"),
        ("SECURE", "SCRAM-SHA-512"),
        ("SECURE", "PLAIN"),
        ("SECURE", "OAUTHBEARER"),
    ],
)
def test_an_output_is_let_in(listener: str, mechanism: str, kafka_secured: Secured) -> None:
    topic = _topic(kafka_secured)
    output = _output(kafka_secured, listener, topic, mechanism)
    assert output.probe() == f"the topic {topic} has 1 partition"
    assert output.deliver(batches("a"), Seen().ex).errors == [None]
    assert [record.value for record in kafka_secured.kafka.consume(topic)] == [b"a"]


def test_a_token_may_be_in_a_cache(kafka_secured: Secured) -> None:
    topic, address = _topic(kafka_secured), kafka_secured.broker.address("SASL")
    sasl = "{mechanism: OAUTHBEARER, token_cache: tokens, token_key: kafka}"
    token = kafka_secured.token("alice")
    output = built(
        f"kafka: {{addresses: ['{address}'], topic: {topic}, sasl: {sasl}}}",
        f"cache_resources: [{{label: tokens, memory: {{init_values: {{kafka: '{token}'}}}}}}]",
    )
    assert output.probe() == f"the topic {topic} has 1 partition"
    assert output.deliver(batches("a"), Seen().ex).errors == [None]
    assert [record.value for record in kafka_secured.kafka.consume(topic)] == [b"a"]


def test_a_topic_that_may_not_be_written_is_refused_before_anything_is_sent(
    kafka_secured: Secured,
) -> None:
    topic = _topic(kafka_secured)
    kafka_secured.allow("bob", "DESCRIBE", "TOPIC", topic)
    output = _output(kafka_secured, "SASL", topic, "PLAIN", "bob")
    with pytest.raises(
        StreamerError, match=f"the topic '{topic}' is refused to the user 'bob'; gr"
    ):
        output.output.preflight("s")
    kafka_secured.allow("bob", "WRITE", "TOPIC", topic)
    assert output.output.preflight("s") == ""
    assert output.deliver(batches("a"), Seen().ex).errors == [None]


# What a transaction takes, beside TRANSACTIONAL_ID and GROUP of the stream's prefix: the topic.
RIGHTS = (
    ("WRITE", "TRANSACTIONAL_ID"),
    ("READ", "GROUP"),
    ("WRITE", "TOPIC"),
    ("READ", "TOPIC"),
)


def _allow(secured: Secured, rights: Any, topic: str, stream: str) -> None:
    for operation, kind in rights:
        prefixed = kind != "TOPIC"
        name = f"streamer-{stream}" if prefixed else topic
        secured.allow("bob", operation, kind, name, prefixed=prefixed)


def _part(stream: str) -> Seen:
    seen = Seen()
    seen.ex.micro_batch = MicroBatch(stream, 0, "0")
    return seen


def test_a_transaction_takes_the_rights_that_the_page_names_and_no_other(
    kafka_secured: Secured,
) -> None:
    topic = _topic(kafka_secured)
    stream = topic.replace("-", "")
    output = _output(kafka_secured, "SASL", topic, "PLAIN", "bob", transactional=True)
    _allow(kafka_secured, RIGHTS, topic, stream)
    assert output.output.preflight(stream) == ""
    seen = _part(stream)
    assert output.output.begin(seen.ex)
    assert output.deliver(batches("a"), seen.ex).errors == [None]
    output.output.commit(seen.ex)
    assert not output.output.begin(seen.ex)
    assert [record.value for record in kafka_secured.kafka.consume(topic)] == [b"a"]


@pytest.mark.parametrize(
    ("missing", "named"),
    list(
        zip(
            RIGHTS,
            (
                "grant WRITE on transactional ids that begin with streamer-{stream}$",
                "grant READ on groups that begin with streamer-{stream}$",
                "grant WRITE on the topic$",
                "grant WRITE and READ on the topic '{topic}', with which",
            ),
            strict=True,
        )
    ),
    ids=["-".join(right) for right in RIGHTS],
)
def test_a_right_that_a_transaction_lacks_is_named_before_anything_is_sent(
    missing: tuple[str, str], named: str, kafka_secured: Secured
) -> None:
    topic = _topic(kafka_secured)
    stream = topic.replace("-", "")
    output = _output(kafka_secured, "SASL", topic, "PLAIN", "bob", transactional=True)
    _allow(kafka_secured, [right for right in RIGHTS if right != missing], topic, stream)
    named = named.format(stream=stream, topic=topic)
    began = time.monotonic()
    with pytest.raises(StreamerError, match=f"refused to the user 'bob'.*{named}") as raised:
        output.output.preflight(stream)
    assert time.monotonic() - began < 15
    assert "\n" not in str(raised.value)
    if missing[1] != "TOPIC":
        # Rights may go while the stream runs.
        with pytest.raises(SendAbortedError, match=named):
            output.output.begin(_part(stream).ex)
    assert kafka_secured.kafka.consume(topic) == []
