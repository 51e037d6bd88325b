"""The broker that asks who one is: it lets in who may, by every way, and nobody else."""

from __future__ import annotations

import dataclasses

import pytest

from tests.servers.kafka import Kafka
from tests.servers.kafka.secured import KEY_PASSWORD, LISTENERS, MECHANISMS, Secured

pytestmark = pytest.mark.slow

WAYS = [("TLS", ""), ("MUTUAL", "")]
WAYS += [(one, by) for one in ("SASL", "SECURE") for by in MECHANISMS]


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_who_shows_what_is_asked_for_is_let_in(
    kafka_secured: Secured, listener: str, mechanism: str
) -> None:
    assert kafka_secured.client(listener, mechanism=mechanism).answers(within=60)


@pytest.mark.parametrize(
    ("listener", "mechanism", "settings"),
    [
        ("TLS", "", {"ssl.ca.location": "stranger"}),
        ("MUTUAL", "", {"ssl.certificate.location": "", "ssl.key.location": ""}),
        ("SECURE", "PLAIN", {"sasl.password": "wrong"}),
        ("SASL", "SCRAM-SHA-256", {"sasl.password": "wrong"}),
        ("SASL", "OAUTHBEARER", {"oauth_cb": lambda _: ("eyJhbGciOiJub25lIn0.e30.", 2e9)}),
    ],
)
def test_others_are_not(
    kafka_secured: Secured, listener: str, mechanism: str, settings: dict[str, object]
) -> None:
    known = kafka_secured.client(listener, mechanism=mechanism)
    if settings.get("ssl.ca.location"):
        settings = {"ssl.ca.location": str(kafka_secured.stranger)}
    given = {k: v for k, v in {**known.settings, **settings}.items() if v != ""}
    assert not dataclasses.replace(known, settings=given).answers(within=0.5)


def test_a_key_behind_a_password_is_the_same_key(kafka_secured: Secured) -> None:
    known = kafka_secured.client("MUTUAL")
    encrypted = {"ssl.key.location": str(kafka_secured.encrypted_key)}
    settings = {**known.settings, **encrypted, "ssl.key.password": KEY_PASSWORD}
    assert Kafka(known.bootstrap, settings).answers(within=60)


def test_who_has_no_rights_sees_and_writes_nothing_until_allowed(kafka_secured: Secured) -> None:
    assert set(LISTENERS) == {"TLS", "MUTUAL", "SASL", "SECURE"}
    kafka_secured.kafka.create("servers-rights")
    bob = kafka_secured.client("SASL", "bob", "SCRAM-SHA-512")
    assert "servers-rights" not in bob.topics()
    with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
        bob.produce("servers-rights", "x")
    for operation in ("DESCRIBE", "WRITE"):
        kafka_secured.allow("bob", operation, "TOPIC", "servers-rights")
    bob.produce("servers-rights", "x")
    assert [one.value for one in kafka_secured.client("TLS").consume("servers-rights")] == [b"x"]
