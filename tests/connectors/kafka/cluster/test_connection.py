"""What the fields of a connection become in the words of both clients."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import ssl

import pytest
from cryptography.hazmat.primitives import serialization

from streamer import __version__
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.connection_fields import read_connection
from streamer.connectors.kafka.security.oauth_tokens import token_end
from streamer.core.errors import StreamerError
from tests.connectors.kafka.parsing import connection_fields, problems
from tests.servers.certificates import certificate


def connection(text: str) -> Connection:
    return read_connection(connection_fields(text))


def jwt(**claims: object) -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def test_brokers_may_be_divided_by_commas_in_both_spellings():
    expected = ("a:1", "b:2", "c:3")
    assert connection("{addresses: ['a:1, b:2', '', 'c:3', 'a:1']}").brokers == expected
    assert connection("{seed_brokers: ['a:1,b:2', 'c:3']}").brokers == expected


def test_the_defaults_of_each_component_are_connects():
    kafka, seed = connection("{addresses: [a]}"), connection("{seed_brokers: [a]}")
    assert (kafka.client_id, seed.client_id) == ("benthos", "redpanda-connect")
    settings = seed.librdkafka_settings()
    assert not settings.pop("logger").isEnabledFor(logging.CRITICAL)
    assert settings == {
        "bootstrap.servers": "a",
        "client.id": "redpanda-connect",
        "security.protocol": "PLAINTEXT",
        "socket.keepalive.enable": True,
        "allow.auto.create.topics": False,
        "log_level": 0,
        "log.connection.close": False,
        "metadata.max.age.ms": 60000,
        "topic.metadata.refresh.interval.ms": 60000,
        "socket.timeout.ms": 10000,
        "connections.max.idle.ms": 20000,
    }


def test_kafka_python_gets_the_same_settings_and_tries_another_broker_in_time():
    text = (
        "{seed_brokers: ['a:1,b:2'], client_id: me, request_timeout_overhead: 6s, "
        "tls: {enabled: true, skip_cert_verify: true}, "
        "sasl: [{mechanism: SCRAM-SHA-256, username: u, password: p}]}"
    )
    settings = connection(text).kafka_python_settings()
    context = settings.pop("ssl_context")
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)
    assert settings == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "me",
        "client_software_name": "spark-streamer",
        "client_software_version": __version__,
        "security_protocol": "SASL_SSL",
        "request_timeout_ms": 6_000,
        "reconnect_backoff_max_ms": 1_000,
        "receive_message_max_bytes": 100_000_000,
        "max_in_flight_requests_per_connection": 100,
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
        "sasl_kerberos_service_name": "kafka",
        "metadata_max_age_ms": 60_000,
        "connections_max_idle_ms": 20_000,
        "socket_connection_setup_timeout_ms": 2_000,
        "socket_connection_setup_timeout_max_ms": 2_000,
    }


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{addresses: []}", "field addresses has no broker"),
        ("{addresses: [',']}", "field addresses has no broker"),
        ("{seed_brokers: ['a:b']}", "field seed_brokers has 'a:b'; expected host and port"),
        ("{seed_brokers: ['a:99999']}", "field seed_brokers has 'a:99999'; expected host and port"),
        (
            "{seed_brokers: [a], sasl: [{mechanism: AWS_MSK_IAM, aws: {credentials: {id: x}}}]}",
            "sasl.0.aws.credentials: id and secret need each other",
        ),
        (
            "{seed_brokers: [a], sasl: [{mechanism: REDPANDA_CLOUD_SERVICE_ACCOUNT}]}",
            "only within Redpanda Cloud",
        ),
        (
            "{seed_brokers: [a], sasl: [{mechanism: none, aws: {region: x}}]}",
            "sasl.0.aws: has no effect without mechanism: AWS_MSK_IAM",
        ),
        ("{seed_brokers: [a], sasl: [{mechanism: PLAIN}]}", "sasl.0.username: is not set"),
        ("{seed_brokers: [a], sasl: [{mechanism: OAUTHBEARER}]}", "sasl.0.token: is not set"),
        (
            "{seed_brokers: [a], sasl: [{mechanism: PLAIN, username: a}, "
            "{mechanism: OAUTHBEARER, token: b}]}",
            "sasl: has 2 mechanisms; one can be used",
        ),
        ("{addresses: [a], sasl: {mechanism: SCRAM-SHA-256}}", "sasl.user: is not set"),
        (
            "{addresses: [a], sasl: {mechanism: OAUTHBEARER, token_cache: c}}",
            "sasl.token_key: is not set",
        ),
        ("{seed_brokers: [a], tcp: {tcp_user_timeout: 1s}}", "field tcp_user_timeout is set"),
        ("{seed_brokers: [a], metadata_max_age: 0s}", "field metadata_max_age must be longer"),
        (
            "{seed_brokers: [a], tls: {client_certs: [{cert: a, key: b}, {cert: c, key: d}]}}",
            "tls.client_certs: has several certificates",
        ),
    ],
)
def test_what_cannot_be_is_said(text, wrong):
    (found,) = problems(text)
    assert wrong in found


def test_none_is_no_sasl_in_both_spellings():
    assert connection("{addresses: [a], sasl: {mechanism: none, user: u}}").sasl is None
    assert connection("{addresses: [a], sasl: {mechanism: ''}}").sasl is None
    assert connection("{seed_brokers: [a], sasl: [{mechanism: none}]}").sasl is None


def test_a_password_is_taken_as_it_is():
    text = '{addresses: [a], sasl: {mechanism: PLAIN, user: u, password: "a\\"b\\\\c;\\n=é"}}'
    found = connection(text)
    assert found.librdkafka_settings()["sasl.password"] == 'a"b\\c;\n=é'


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_is_the_same_in_both_spellings(mechanism):
    single = f"{{addresses: [a], tls: {{enabled: true}}, sasl: {{mechanism: {mechanism}, "
    listed = f"{{seed_brokers: [a], tls: {{enabled: true}}, sasl: [{{mechanism: {mechanism}, "
    for found in (
        connection(single + "user: u, password: p}}"),
        connection(listed + "username: u, password: p}]}"),
    ):
        told = found.librdkafka_settings()
        assert (told["sasl.username"], told["sasl.password"]) == ("u", "p")
        assert (told["security.protocol"], told["sasl.mechanisms"]) == ("SASL_SSL", mechanism)
        asked = found.kafka_python_settings()
        assert (asked["security_protocol"], asked["sasl_mechanism"]) == ("SASL_SSL", mechanism)
        assert (asked["sasl_plain_username"], asked["sasl_plain_password"]) == ("u", "p")


def test_a_token_is_handed_out_with_its_end_and_extensions():
    token = jwt(sub="me", exp=2_000_000_000)
    text = (
        f"{{seed_brokers: [a], sasl: [{{mechanism: OAUTHBEARER, token: {token}, "
        "extensions: {logicalCluster: one}}]}"
    )
    found = connection(text)
    told = found.librdkafka_settings()["oauth_cb"]("")
    assert told == (token, 2_000_000_000.0, "", {"logicalCluster": "one"})


def test_a_token_says_when_it_ends():
    assert token_end(jwt(exp=5)) == 5.0
    assert token_end("opaque") == token_end("a.b.c") == token_end(jwt(exp="soon")) > 4e9


def test_certificates_and_keys_are_read_from_files(tmp_path):
    certificate(tmp_path)
    key = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "locked.pem").write_bytes(locked)
    text = (
        f"{{seed_brokers: [a], tls: {{enabled: true, root_cas_file: {tmp_path}/cert.pem, "
        f"client_certs: [{{cert_file: {tmp_path}/cert.pem, key_file: {tmp_path}/locked.pem, "
        "password: PASSWORD}]}}"
    )
    told = connection(text.replace("PASSWORD", "secret")).librdkafka_settings()
    assert told["ssl.key.pem"].encode() == locked
    assert told["ssl.key.password"] == "secret"
    (tmp_path / "locked.pem").unlink()
    with pytest.raises(StreamerError, match="tls.client_certs.key_file: .*No such file"):
        connection(text.replace("PASSWORD", "secret")).librdkafka_settings()


def test_certificates_are_not_verified_where_nobody_wants_it():
    text = "{seed_brokers: ['127.0.0.1:1'], tls: {enabled: true, skip_cert_verify: true}}"
    found = connection(text)
    assert found.librdkafka_settings()["enable.ssl.certificate.verification"] is False


def test_a_connection_is_pickled_and_shows_no_secret(tmp_path):
    text = (
        "{addresses: [a], tls: {enabled: true, client_certs: [{cert: c, key: secret_key}]}, "
        "sasl: {mechanism: PLAIN, user: u, password: secret_word}}"
    )
    found = pickle.loads(pickle.dumps(connection(text)))
    assert found.librdkafka_settings() == connection(text).librdkafka_settings()
    assert "secret" not in repr(found)
    assert "secret" not in repr(found.sasl)
    assert "secret" not in repr(found.encryption)
