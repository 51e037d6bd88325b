"""What is said before a stream begins, of a broker that knows who may do what."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.topic_selection import TopicSelection
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.core.errors import StreamerError
from tests.connectors.kafka.secured import connection
from tests.servers import free_port
from tests.servers.kafka.secured import MECHANISMS, Secured

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def topic(kafka_secured: Secured) -> Iterator[str]:
    name = kafka_secured.kafka.create("preflight", partitions=3)
    kafka_secured.kafka.produce(name, *"abcde")
    yield name


def probed(
    connection: Connection,
    topic: str,
    group: str = "preflight",
    selection: TopicSelection | None = None,
) -> str:
    """Return what the probe says, right or wrong; it is one line, and takes no longer than 10 s."""
    began = time.monotonic()
    source = KafkaSource(
        "kafka", connection, selection or TopicSelection(topics=(topic,)), group=group
    )
    try:
        said = source.probe()
    except StreamerError as error:
        said = str(error)
    assert time.monotonic() - began < 30
    assert "\n" not in said
    return said


WAYS = [("PLAINTEXT", ""), ("TLS", ""), ("MUTUAL", "")]
WAYS += [(listener, mechanism) for listener in ("SASL", "SECURE") for mechanism in MECHANISMS]


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_who_may_read_sees_what_there_is(kafka_secured, topic, listener, mechanism):
    said = probed(connection(kafka_secured, listener, mechanism), topic)
    assert said == "1 topic, 3 partitions, 5 messages for the group 'preflight'"


def test_a_certificate_that_nobody_verifies_is_none_that_is_refused(kafka_secured, topic):
    unverified = {"root_cas_file": "", "skip_cert_verify": True}
    by_number = kafka_secured.broker.address("TLS").replace("localhost", "127.0.0.1")
    found = connection(kafka_secured, "TLS", tls=unverified, address=by_number)
    assert "5 messages" in probed(found, topic)


@pytest.mark.parametrize(
    ("listener", "changed", "said"),
    [
        (
            "TLS",
            {"tls": {"root_cas_file": "STRANGER"}},
            "the TLS handshake with localhost:PORT fails: certificate verify failed: unable to get "
            "local issuer certificate; set tls.root_cas_file to the authority that signed the "
            "broker's certificate",
        ),
        (
            "MUTUAL",
            {"tls": {"client_certs": []}},
            "the broker expects a certificate of the client that it knows: tls.client_certs",
        ),
        (
            "SECURE",
            {"mechanism": "PLAIN", "sasl": {"password": "wrong"}},
            "the broker localhost:PORT refuses PLAIN of user 'alice': Authentication failed: "
            "Invalid username or password; check mechanism, user and password in sasl",
        ),
        (
            "SASL",
            {"mechanism": "SCRAM-SHA-512", "sasl": {"password": "wrong"}},
            "refuses SCRAM-SHA-512 of user 'alice'",
        ),
        (
            "SECURE",
            {"mechanism": "OAUTHBEARER", "sasl": {"token": "eyJhbGciOiJub25lIn0.e30."}},
            "refuses OAUTHBEARER: ",
        ),
        ("PLAINTEXT", {"address": "TLS"}, "answers in PLAINTEXT, which the config says"),
        ("TLS", {"address": "PLAINTEXT"}, "the listener may be without TLS: leave tls out"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(kafka_secured, topic, listener, changed, said):
    changed = dict(changed)
    if "STRANGER" in str(changed):
        changed = {"tls": {"root_cas_file": str(kafka_secured.stranger)}}
    if "address" in changed:
        changed["address"] = kafka_secured.broker.address(changed["address"])
    found = connection(kafka_secured, listener, **changed)
    port = found.brokers[0].rpartition(":")[2]
    assert said.replace("PORT", port) in probed(found, topic)


def test_a_broker_that_is_not_there_is_named(kafka_secured, topic):
    nowhere = f"127.0.0.1:{free_port()}"
    said = probed(connection(kafka_secured, "PLAINTEXT", address=nowhere), topic)
    assert said == (
        f"no broker answers at {nowhere}: Connection refused; expected one of them to take "
        "connections, check that Kafka runs and that the addresses are right"
    )


def test_topics_and_partitions_that_there_are_not_are_named(kafka_secured, topic):
    open_to_all = connection(kafka_secured, "PLAINTEXT")
    assert probed(open_to_all, "no-such") == (
        f"there is no topic 'no-such' at {open_to_all.brokers[0]}; create it, or correct the field "
        "topics"
    )
    selection = TopicSelection(partitions={topic: {2: -2, 7: -2}})
    assert probed(open_to_all, topic, selection=selection) == (
        "the topic 'preflight' has no partition 7; it has 0 to 2, correct the field topics"
    )
    assert "no-such" not in kafka_secured.kafka.topics()


def test_rights_that_are_missing_are_named_one_after_the_other(kafka_secured, topic):
    bob = connection(kafka_secured, "SASL", "SCRAM-SHA-256", user="bob")
    steps = [
        (("DESCRIBE", "TOPIC", topic), "the topic 'preflight' is refused to the user 'bob'"),
        (("READ", "TOPIC", topic), "reading 'preflight' is refused to the user 'bob'; grant it"),
        (("READ", "GROUP", "preflight-bob"), "the group 'preflight-bob' is refused to the user"),
    ]
    for right, said in steps:
        assert said in probed(bob, topic, "preflight-bob")
        kafka_secured.allow("bob", *right)
    assert "5 messages" in probed(bob, topic, "preflight-bob")
