"""Every field of Redpanda Connect's inputs of Kafka does what it says, or says that it does not.

A field that is in Connect's list and has no line here fails, and so does one that is taken, changes
nothing, and does not say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import find_input_batching
from streamer.components.inputs import kafka, kafka_franz, redpanda
from streamer.config import parse_config
from streamer.connectors.kafka.input.kafka_input import KafkaInput
from streamer.core.errors import ConfigError
from streamer.plan.rejection import replays
from streamer.sdk.spec import REQUIRED, Field, Spec
from tests.components.inputs.reading import built
from tests.connectors.kafka.listed import connects, leaves, nested

LISTED = Path(__file__).parent / "data" / "connect_kafka_inputs.yaml"
SPECS: Mapping[str, Spec] = {one.NAME: one.SPEC for one in (kafka, kafka_franz, redpanda)}

NOTHING = ("Has no effect", "Taken for compatibility")
"""What the description of a field begins with that changes nothing."""

# Where Connect has them under these names in other versions, or as deprecated fields.
ELSEWHERE = {"start_from_oldest", "regexp_topics", "regexp_topics_include", "regexp_topics_exclude"}
OURS = {"max_messages_per_trigger", "min_partitions", "fail_on_data_loss"}
OURS |= {"sasl.kerberos_service_name"}

PEM = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"

# A value that is not the default, with what else it needs; "" stands for the field itself.
TRIED: dict[str, Any] = {
    "addresses": ["b:1"],
    "seed_brokers": ["b:1"],
    "topics": ["other"],
    "target_version": "3.1.0",
    "client_id": "me",
    "instance_id": "i",
    "rack_id": "r",
    "consumer_group": "g",
    "start_offset": "latest",
    "checkpoint_limit": 7,
    "commit_period": "9s",
    "max_processing_period": "1s",
    "extract_tracing_map": "root = @a",
    "fetch_buffer_cap": 9,
    "multi_header": True,
    "auto_replay_nacks": False,
    "timely_nacks_maximum_wait": "9s",
    "metadata_max_age": "9s",
    "request_timeout_overhead": "9s",
    "conn_idle_timeout": "9s",
    "rebalance_timeout": "9s",
    "session_timeout": "9s",
    "heartbeat_interval": "9s",
    "fetch_max_bytes": "9MiB",
    "fetch_max_wait": "9s",
    "fetch_min_bytes": "9B",
    "fetch_max_partition_bytes": "9MiB",
    "transaction_isolation_level": "read_committed",
    "topic_lag_refresh_period": "9s",
    "partition_buffer_bytes": "9MB",
    "max_yield_batch_bytes": "9KB",
    "start_from_oldest": False,
    "group": {"session_timeout": "1s", "heartbeat_interval": "1s", "rebalance_timeout": "1s"},
    "tcp.connect_timeout": "9s",
    "tcp.keep_alive": {"idle": "9s", "interval": "9s", "count": 3},
    "tcp.tcp_user_timeout": "9s",
    "tls.enabled": True,
    "tls.skip_cert_verify": True,
    "tls.enable_renegotiation": True,
    "tls.root_cas": PEM,
    "tls.root_cas_file": "ca.pem",
    "tls.client_certs": [{"cert_file": "a.pem", "key_file": "a.key"}],
    "batching.count": 9,
    "batching.byte_size": 9,
    "batching.period": "9s",
    "batching.check": "this.a",
    "batching.processors": [{"mapping": "root = this"}],
    "regexp_topics": True,
    "regexp_topics_include": ["a"],
    "regexp_topics_exclude": ["a"],
    "max_messages_per_trigger": 9,
    "min_partitions": 9,
    "fail_on_data_loss": False,
    "unordered_processing.enabled": True,
    "unordered_processing.checkpoint_limit": 7,
    "sasl": [{"mechanism": "PLAIN", "username": "u", "password": "p"}],
    "sasl.mechanism": "PLAIN",
    "sasl.user": "v",
    "sasl.password": "p",
    "sasl.access_token": "t",
    "sasl.token_cache": "tokens",
    "sasl.token_key": "k",
    "sasl.kerberos_service_name": "brokers",
}
TRIED = TRIED | {f"unordered_processing.{k}": v for k, v in TRIED.items() if k[:9] == "batching."}

PLAIN = {"mechanism": "PLAIN", "user": "u"}
OAUTH = {"mechanism": "OAUTHBEARER"}
# What must be set for a field to count at all.
GIVEN: Mapping[str, Mapping[str, Any]] = {
    **{
        path: {"tls": {"enabled": True}}
        for path in TRIED
        if path[:4] == "tls." and "ena" not in path
    },
    "tls.enable_renegotiation": {"tls": {"enabled": True}},
    "sasl.mechanism": {"sasl": {"user": "u"}},
    "sasl.user": {"sasl": PLAIN},
    "sasl.password": {"sasl": PLAIN},
    "sasl.access_token": {"sasl": {**OAUTH, "access_token": "s"}},
    "sasl.token_cache": {"sasl": {**OAUTH, "access_token": "s"}},
    "sasl.token_key": {"sasl": {**OAUTH, "token_cache": "tokens", "token_key": "l"}},
    "sasl.kerberos_service_name": {"sasl": {"mechanism": "GSSAPI"}},
    "regexp_topics_include": {"topics": None},
    "regexp_topics_exclude": {"topics": ["t"], "regexp_topics": True},
    "unordered_processing.enabled": {"unordered_processing": {"checkpoint_limit": 7}},
    **{
        path: {"unordered_processing": {"enabled": True}}
        for path in TRIED
        if path.startswith("unordered_processing.") and "enabled" not in path
    },
}


def tried_leaves(fields: tuple[Field, ...], path: str = "") -> Iterator[tuple[str, Field]]:
    for field in fields:
        here = f"{path}{field.name}"
        if field.children and field.shape == "scalar" and here not in TRIED:
            yield from tried_leaves(field.children, f"{here}.")
        else:
            yield here, field


def paths(listed: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in listed.items():
        if isinstance(value, dict):
            yield from paths(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def merged(into: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(into)
    for name, value in more.items():
        inner = found.get(name)
        if isinstance(value, Mapping):
            found[name] = merged(inner if isinstance(inner, dict) else {}, value)
        elif value is None:
            found.pop(name)
        else:
            found[name] = value
    return found


def config(name: str, more: Mapping[str, Any]) -> str:
    brokers = "addresses" if name == "kafka" else "seed_brokers"
    fields = merged({brokers: ["a:1"], "topics": ["t"]}, more)
    tokens = {"label": "tokens", "memory": {"init_values": {"k": "x", "l": "y"}}}
    return json.dumps({"cache_resources": [tokens], "input": {name: fields}})


def meaning(name: str, more: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a config means to the source."""
    found = built(config(name, more))
    assert isinstance(found, KafkaInput)
    again = replays(parse_config(config(name, more)).input, {})
    batching = find_input_batching(parse_config(config(name, more)).input)
    policy = batching and [repr(value) for value in batching.values()]
    return found.source, again, policy


@pytest.mark.parametrize("name", SPECS)
def test_the_fields_are_those_of_connect_with_its_defaults(name: str) -> None:
    listed = dict(paths(connects(LISTED, "input", SPECS)[name]))
    here: dict[str, Field] = {}
    for path, field in leaves(SPECS[name].fields):
        here[path] = field
    assert not listed.keys() - here.keys(), "not taken"
    assert here.keys() - listed.keys() <= ELSEWHERE | OURS
    for path, default in listed.items():
        ours = here[path].default
        if default in ([], "", "root = @", "2.1.0") or ours is REQUIRED:
            continue
        assert (list(ours) if isinstance(ours, tuple) else ours) == default, path


@pytest.mark.parametrize(
    ("name", "path", "field"),
    [(name, *leaf) for name in SPECS for leaf in tried_leaves(SPECS[name].fields)],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_field_does_something_or_says_that_it_does_not(
    name: str, path: str, field: Field
) -> None:
    given = GIVEN.get(path, {})
    more = merged(dict(given), nested(path, TRIED[path]))
    said = field.description.startswith(NOTHING)
    try:
        changed = meaning(name, more) != meaning(name, given)
    except ConfigError as refused:
        told = [lint.message for lint in refused.lints]
        assert len(told) == 1 and len(told[0].split()) > 5, told
        assert not said
        return
    assert changed != said, "has no effect and does not say so" if not said else "has an effect"
