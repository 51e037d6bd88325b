"""The three inputs of Kafka: what their fields mean and what lint says of them; no broker."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST, LATEST
from streamer.connectors.kafka.input.kafka_input import KafkaInput
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.opened_input import MetadataSettings
from streamer.connectors.kafka.input.start_offsets import StartRule
from streamer.core.errors import ConfigError, StreamerError
from tests.components.inputs.reading import built

KAFKA = "kafka: {addresses: [a], topics: [t]"
FRANZ = "kafka_franz: {seed_brokers: [a], topics: [t]"
REDPANDA = "redpanda: {seed_brokers: [a], topics: [t]"
ALL = (KAFKA, FRANZ, REDPANDA)


def source(fields: str) -> KafkaSource:
    found = built(f"input: {{{fields}}}}}")
    assert isinstance(found, KafkaInput)
    return pickle.loads(pickle.dumps(found.source))


def wrong(fields: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"input: {{{fields}}}}}")
    (lint,) = caught.value.lints
    return lint.message


def test_messages_are_described_as_by_each_input_of_connect():
    assert source(KAFKA).metadata == MetadataSettings(named_first=True)
    assert source(FRANZ).metadata == MetadataSettings()
    assert source(REDPANDA).metadata == MetadataSettings(key_bytes=True)
    assert source(f"{KAFKA}, multi_header: true").metadata.multi_header
    assert source(f"{FRANZ}, multi_header: true").metadata.multi_header
    metrics = [source(fields).lag_metric for fields in ALL]
    assert metrics == ["kafka_lag", "kafka_lag", "redpanda_lag"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (KAFKA, StartRule("earliest")),
        (f"{KAFKA}, start_from_oldest: false", StartRule("latest")),
        (FRANZ, StartRule("earliest")),
        (f"{FRANZ}, start_offset: latest", StartRule("latest")),
        (f"{FRANZ}, start_offset: latest, start_from_oldest: false", StartRule("latest")),
        (f"{REDPANDA}, start_offset: committed", StartRule("committed")),
        (f"{REDPANDA}, start_offset: 1970-01-01T00:00:01.5Z", StartRule("time", 1500)),
        (f"{REDPANDA}, start_offset: '1769860800000'", StartRule("time", 1769860800000)),
    ],
)
def test_it_begins_where_the_config_says(fields, expected):
    assert source(fields).start == expected


def test_single_partitions_are_begun_where_they_say_or_by_the_rule():
    fields = "seed_brokers: [a], topics: ['t:0:7', 't:1-2']"
    assert source(f"redpanda: {{{fields}").selection.partitions == {
        "t": {0: 7, 1: EARLIEST, 2: EARLIEST}
    }
    late = source(f"redpanda: {{{fields}, start_offset: latest").selection
    assert late.partitions == {"t": {0: 7, 1: LATEST, 2: LATEST}}
    with_group = source("kafka: {addresses: [a], topics: ['t:3'], consumer_group: g")
    assert (with_group.group, with_group.selection.partitions) == ("g", {"t": {3: EARLIEST}})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("kafka: {addresses: [a], topics: []", "field topics has no topic; expected a name"),
        ("kafka: {addresses: [a], topics: ['t:0:1']", "this input takes no offsets"),
        ("kafka: {addresses: [a], topics: ['t:0', u]", "whole topics and single partitions"),
        ("kafka: {addresses: [a], topics: ['t:x']", "expected a partition such as 3"),
        ("redpanda: {seed_brokers: [a]", "is not set; expected topics, or regexp_topics_include"),
        (f"{FRANZ}, regexp_topics_include: [u]", "cannot be given together with"),
        (f"{FRANZ}, regexp_topics_exclude: [u]", "has no effect on topics by name"),
        (f"{FRANZ}, regexp_topics: true, regexp_topics_exclude: ['(']", "not a regular expression"),
        ("redpanda: {seed_brokers: [a], topics: ['('], regexp_topics: true", "not a regular"),
        ("redpanda: {seed_brokers: [a], topics: ['t:1'], consumer_group: g", "cannot be given"),
        (f"{FRANZ}, start_from_oldest: false", "cannot be false with start_offset: earliest"),
        (f"{FRANZ}, start_offset: soon", "expected earliest, latest, committed, or a time"),
        (f"{FRANZ}, fetch_max_bytes: 1 parsec", "expected a size such as 1MiB"),
        (f"{FRANZ}, fetch_max_bytes: 3GiB", "expected 0 to 2147483647 bytes"),
        (f"{FRANZ}, transaction_isolation_level: none", "transaction_isolation_level"),
        (f"{KAFKA}, checkpoint_limit: 0", "is 0; expected 1 or more"),
        (f"{KAFKA}, batching: {{count: -1}}", "batching.count is -1; expected 0 (no limit) or"),
        (
            f"{FRANZ}, batching: {{processors: [{{noop: {{}}}}]}}",
            "batch policy must have at least one active trigger",
        ),
        (
            f"{REDPANDA}, unordered_processing: {{batching: {{byte_size: -1}}}}",
            "unordered_processing.batching.byte_size is -1; expected 0",
        ),
        (f"{KAFKA}, tls: {{root_cas: a, root_cas_file: b}}", "only one field between"),
        (f"{KAFKA}, sasl: {{mechanism: PLAIN}}", "sasl.user"),
        (
            f"{KAFKA}, sasl: {{mechanism: OAUTHBEARER, token_cache: no, token_key: k}}",
            "no",
        ),
        (f"{REDPANDA}, target_version: 1.0.0", "field target_version not recognised"),
    ],
)
def test_what_cannot_be_is_said(fields, expected):
    assert expected in wrong(fields)


def test_every_input_of_connect_that_has_no_effect_here_is_taken():
    group = "group: {session_timeout: 1s, heartbeat_interval: 1s, rebalance_timeout: 1s}"
    source(
        f"{KAFKA}, target_version: 2.1.0, instance_id: i, max_processing_period: 1s, {group}, "
        "fetch_buffer_cap: 1, auto_replay_nacks: false, timely_nacks_maximum_wait: 1s, "
        "extract_tracing_map: root = @, batching: {count: 1}"
    )
    source(
        f"{REDPANDA}, partition_buffer_bytes: 2MB, max_yield_batch_bytes: 64KB, instance_id: i, "
        "rebalance_timeout: 1s, session_timeout: 1s, heartbeat_interval: 1s, "
        "tcp: {connect_timeout: 2s, keep_alive: {idle: 1s, interval: 1s, count: 2}}"
    )


def test_a_micro_batch_is_bounded_by_what_is_not_the_default():
    assert source(KAFKA).bound is None
    assert source(f"{KAFKA}, checkpoint_limit: 1024").bound is None
    assert source(f"{FRANZ}, checkpoint_limit: 1023").bound == 1023
    assert source(f"{KAFKA}, checkpoint_limit: 9, max_messages_per_trigger: 5").bound == 5
    limit = "unordered_processing: {checkpoint_limit: 7"
    assert source(f"{REDPANDA}, {limit}}}").bound is None
    assert source(f"{REDPANDA}, {limit}, enabled: true}}").bound == 7


def test_a_token_is_read_from_its_cache_when_the_stream_starts():
    text = f"""
cache_resources: [{{label: tokens, memory: {{init_values: {{kafka: opaque}}}}}}]
input: {{{KAFKA}, sasl: {{mechanism: OAUTHBEARER, token_cache: tokens, token_key: KEY}}}}}}
"""
    found = built(text.replace("KEY", "kafka"))
    found.check_token()
    # Workers and the planner ask the cache themselves.
    sasl = pickle.loads(pickle.dumps(found.source)).connection.sasl
    assert sasl.token == "" and sasl.current_token() == "opaque"
    assert sasl == found.source.connection.sasl and "opaque" not in repr(found)
    with pytest.raises(StreamerError, match="cannot be had: key does not exist; put it into"):
        built(text.replace("KEY", "other")).open(SimpleNamespace(is_local=True))


def test_a_token_that_is_replaced_in_its_cache_is_the_next_that_is_sent(tmp_path):
    text = f"""
cache_resources: [{{label: tokens, file: {{directory: {tmp_path}}}}}]
input: {{{KAFKA}, sasl: {{mechanism: OAUTHBEARER, token_cache: tokens, token_key: kafka}}}}}}
"""
    (tmp_path / "kafka").write_text("one")
    connection = built(text).source.connection
    assert connection.sasl.current_token() == "one"
    (tmp_path / "kafka").write_text("two")
    assert connection.sasl.current_token() == "two"
    assert connection.librdkafka_settings()["oauth_cb"]("")[0] == "two"


def test_secrets_are_not_shown():
    config = parse_config(
        f"input: {{{KAFKA}, sasl: {{mechanism: PLAIN, user: u, password: hush-hush, "
        "access_token: hush-hush}}}"
    )
    assert "hush" not in repr(config.input.config)
    found = source(f"{KAFKA}, sasl: {{mechanism: PLAIN, user: u, password: hush-hush}}")
    assert "hush" not in repr(found)
