"""Every field of Redpanda Connect's outputs of Kafka does what it says, or says that it does not.

A field that is in Connect's list and not taken fails, and so does one that is taken, changes
nothing, and does not say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.components.outputs import kafka, kafka_franz, redpanda
from streamer.connectors.kafka.output.kafka_output import KafkaOutput
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.sdk.spec import REQUIRED, Field, Spec
from tests.components.outputs.scripted import Seen, built
from tests.connectors.kafka.listed import connects, leaves, nested

LISTED = Path(__file__).parent / "data" / "connect_kafka_outputs.yaml"
SPECS: Mapping[str, Spec] = {one.SPEC.name: one.SPEC for one in (kafka, kafka_franz, redpanda)}

NOTHING = ("Has no effect", "Must be left")
"""What the description of a field begins with that changes nothing."""

# Connect documents `timestamp` as deprecated, so that its list leaves it out.
OURS = {"timestamp", "transactional", "transaction_timeout", "dedupe_headers"}
OURS |= {"sasl.kerberos_service_name"}
# What Connect's list has as an example stands for no default.
EXAMPLES = {"inject_tracing_map", "partition", "timestamp_ms", "target_version"}

PEM = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"

TRIED: Mapping[str, Any] = {
    "addresses": ["b:1"],
    "seed_brokers": ["b:1"],
    "topic": "other",
    "target_version": "3.1.0",
    "client_id": "me",
    "rack_id": "r",
    "key": "k",
    "partitioner": "round_robin",
    "partition": "3",
    "custom_topic_creation.enabled": True,
    "custom_topic_creation.partitions": 9,
    "custom_topic_creation.replication_factor": 3,
    "compression": "gzip",
    "static_headers": {"a": "b"},
    "metadata.exclude_prefixes": ["m"],
    "metadata.include_prefixes": ["m"],
    "metadata.include_patterns": ["^m"],
    "inject_tracing_map": "root = @a",
    "max_in_flight": 1,
    "idempotent_write": None,
    "ack_replicas": True,
    "max_msg_bytes": 9_000,
    "timeout": "9s",
    "retry_as_batch": True,
    "max_retries": 3,
    "backoff.initial_interval": "1s",
    "backoff.max_interval": "9s",
    "backoff.max_elapsed_time": "9s",
    "timestamp": "9",
    "timestamp_ms": "9",
    "transactional": True,
    "transaction_timeout": "9s",
    "dedupe_headers": True,
    "metadata_max_age": "9s",
    "request_timeout_overhead": "9s",
    "conn_idle_timeout": "9s",
    "tcp.connect_timeout": "9s",
    "tcp.keep_alive.idle": "9s",
    "tcp.keep_alive.interval": "9s",
    "tcp.keep_alive.count": 3,
    "tcp.tcp_user_timeout": "9s",
    "acks": "leader",
    "allow_auto_topic_creation": False,
    "max_message_bytes": "9kB",
    "broker_write_max_bytes": "9MB",
    "max_buffered_records": 9,
    "max_buffered_bytes": "9MB",
    "max_in_flight_requests": 3,
    "record_retries": 9,
    "record_delivery_timeout": "9s",
    "batching.count": 9,
    "batching.byte_size": 9,
    "batching.period": "9s",
    "batching.check": "this.a",
    "batching.processors": [{"mapping": "root = this"}],
    "tls.enabled": True,
    "tls.skip_cert_verify": True,
    "tls.enable_renegotiation": True,
    "tls.root_cas": PEM,
    "tls.root_cas_file": "ca.pem",
    "tls.client_certs": [{"cert_file": "a.pem", "key_file": "a.key"}],
    "sasl": [{"mechanism": "PLAIN", "username": "u", "password": "p"}],
    "sasl.mechanism": "PLAIN",
    "sasl.user": "v",
    "sasl.password": "p",
    "sasl.access_token": "t",
    "sasl.token_cache": "tokens",
    "sasl.token_key": "k",
    "sasl.kerberos_service_name": "brokers",
}
"""A value of each field that is not the default; None for the other of a bool's."""

PLAIN = {"mechanism": "PLAIN", "user": "u"}
OAUTH = {"mechanism": "OAUTHBEARER"}
TLS = {"tls": {"enabled": True}}
# What must be set for a field to count at all.
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "tls.skip_cert_verify": TLS,
    "tls.enable_renegotiation": TLS,
    "tls.root_cas": TLS,
    "tls.root_cas_file": TLS,
    "tls.client_certs": TLS,
    "sasl.mechanism": {"sasl": {"user": "u"}},
    "sasl.user": {"sasl": PLAIN},
    "sasl.password": {"sasl": PLAIN},
    "sasl.access_token": {"sasl": {**OAUTH, "access_token": "s"}},
    "sasl.token_cache": {"sasl": {**OAUTH, "access_token": "s"}},
    "sasl.kerberos_service_name": {"sasl": {**PLAIN}},
    "sasl.token_key": {"sasl": {**OAUTH, "token_cache": "tokens", "token_key": "l"}},
    "partition": {"partitioner": "manual", "partition": "2"},
    "custom_topic_creation.partitions": {"custom_topic_creation": {"enabled": True}},
    "custom_topic_creation.replication_factor": {"custom_topic_creation": {"enabled": True}},
    "acks": {"idempotent_write": False},
    "max_in_flight_requests": {"idempotent_write": False},
    "batching.byte_size": {"batching": {"count": 100}},
    "batching.processors": {"batching": {"count": 100}},
    "transaction_timeout": {"transactional": True},
}


def listed_paths(listed: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in listed.items():
        if isinstance(value, dict) and value:
            yield from listed_paths(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def merged(into: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(into)
    for name, value in more.items():
        inner = found.get(name)
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            found[name] = merged(inner, value)
        else:
            found[name] = value
    return found


def meaning(name: str, more: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a config means to the output: what it sends, how, by which connection."""
    brokers = "addresses" if name == "kafka" else "seed_brokers"
    fields = merged({brokers: ["a:1"], "topic": "t"}, more)
    tokens = {"label": "tokens", "memory": {"init_values": {"k": "x", "l": "y"}}}
    output = built(json.dumps({name: fields}), f"cache_resources: {json.dumps([tokens])}").output
    assert isinstance(output, KafkaOutput)
    worker, policy = output._worker, output.policy
    message = Message(b"a", {"m": "1", "window_end_timestamp": "2026-01-01T00:00:00Z"})
    return (
        worker.connection,
        worker.connection.sasl and worker.connection.sasl.current_token(),
        settings(worker.producer._settings),
        None if worker.transactions is None else settings(worker.transactions._producer_settings),
        type(worker.chooser),
        worker.topic_creator
        and (worker.topic_creator._partitions, worker.topic_creator._replication),
        output._maker.records_of([message], Seen().ex),
        output._maker.dedupe_headers is None,
        output.max_in_flight,
        policy
        and (policy.count, policy.byte_size, policy.period, not policy.check, policy.processors),
        output._retries,
        output._creates,
    )


def settings(of: Any) -> Any:
    try:
        return {name: value for name, value in of().items() if not callable(value)}
    except StreamerError as error:
        return str(error)


@pytest.mark.parametrize("name", SPECS)
def test_the_fields_are_those_of_connect_with_its_defaults(name: str) -> None:
    listed = dict(listed_paths(connects(LISTED, "output", SPECS)[name]))
    here = dict(leaves(SPECS[name].fields))
    assert not listed.keys() - here.keys() - {"sasl"}, "not taken"
    assert here.keys() - listed.keys() <= OURS
    for path, default in listed.items():
        ours = here[path].default
        if default in ([], "", {}) or ours is REQUIRED or path in EXAMPLES:
            continue
        assert ours == default, path


@pytest.mark.parametrize(
    ("name", "path", "field"),
    [(name, *leaf) for name in SPECS for leaf in leaves(SPECS[name].fields)],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_field_does_something_or_says_that_it_does_not(
    name: str, path: str, field: Field
) -> None:
    given, value = GIVEN.get(path, {}), TRIED[path]
    if value is None:
        value = not field.default
    said = field.description.startswith(NOTHING)
    before = meaning(name, given)
    try:
        changed = meaning(name, merged(given, nested(path, value))) != before
    except ConfigError as refused:
        told = [lint.message for lint in refused.lints]
        assert len(told) == 1 and len(told[0].split()) > 5, told
        return
    assert changed != said, "has an effect" if said else "has none, and does not say so"
