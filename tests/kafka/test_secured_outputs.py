"""Outputs are let in by every way that the config can describe, and need no right beyond theirs."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from streamer.errors import StreamerError
from streamer.message import MicroBatch
from streamer.sending import TakenBackError
from tests.outputs.scripted import Seen, batches, built
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
        output.output.preflight()
    kafka_secured.allow("bob", "WRITE", "TOPIC", topic)
    assert output.output.preflight() == ""
    assert output.deliver(batches("a"), Seen().ex).errors == [None]


def test_transactions_need_the_rights_that_the_page_names_and_say_so(
    kafka_secured: Secured,
) -> None:
    topic = _topic(kafka_secured)
    stream = topic.replace("-", "")
    output = _output(kafka_secured, "SASL", topic, "PLAIN", "bob", transactional=True)
    seen, name = Seen(), f"streamer-{stream}-0"
    seen.ex.micro_batch = MicroBatch(stream, 0, "0")
    with pytest.raises(
        TakenBackError, match="grant WRITE and DESCRIBE on transactional ids .those"
    ):
        output.output.begin(seen.ex)
    for operation in ("WRITE", "DESCRIBE"):
        kafka_secured.allow("bob", operation, "TRANSACTIONAL_ID", name)
    kafka_secured.allow("bob", "READ", "GROUP", name)
    for operation in ("WRITE", "READ"):
        kafka_secured.allow("bob", operation, "TOPIC", topic)
    assert output.output.begin(seen.ex)
    assert output.deliver(batches("a"), seen.ex).errors == [None]
    output.output.commit(seen.ex)
    assert not output.output.begin(seen.ex)
    assert [record.value for record in kafka_secured.kafka.consume(topic)] == [b"a"]
