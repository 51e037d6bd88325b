"""The section `redpanda`: components take from it what they do not say themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.config.echo import echo_config
from streamer.config.load import lint_config
from streamer.connectors.kafka.redpanda_section import REDPANDA_SECTION
from streamer.core.errors import ConfigError
from streamer.engine.driver.input_host import parse_component
from streamer.sdk.spec import Kind, ParsedFields
from tests.components.inputs.reading import built

SECTION: dict[str, Any] = {
    "seed_brokers": ["a:1,b:2"],
    "client_id": "shared",
    "tls": {"enabled": True, "skip_cert_verify": True},
    "sasl": [{"mechanism": "PLAIN", "username": "u", "password": "hush-hush"}],
    "compression": "gzip",
    "max_message_bytes": "5MB",
}


def config(**more: Any) -> str:
    return json.dumps({"redpanda": SECTION, **more})


@pytest.mark.parametrize("name", ["redpanda", "redpanda_common"])
def test_an_input_has_the_connection_of_the_section(name: str) -> None:
    source = built(config(input={name: {"topics": ["t"]}})).source
    assert source.connection.brokers == ("a:1", "b:2")
    assert source.connection.client_id == "shared"
    assert (source.connection.sasl.user, source.connection.encryption is not None) == ("u", True)
    assert source.lag_metric == "redpanda_lag" and source.metadata.key_bytes


def test_what_a_component_says_itself_counts() -> None:
    own = {"topics": ["t"], "client_id": "mine"}
    shared = built(config(input={"redpanda": own})).source.connection
    assert (shared.client_id, shared.sasl.user) == ("mine", "u")
    alone = built(config(input={"redpanda": {**own, "seed_brokers": ["c:3"]}})).source.connection
    assert (alone.brokers, alone.sasl, alone.encryption) == (("c:3",), None, None)


@pytest.mark.parametrize("name", ["redpanda", "redpanda_common"])
def test_an_output_has_the_producer_of_the_section_too(name: str) -> None:
    parsed = parse_config(config(output={name: {"topic": "t"}})).output.config
    assert isinstance(parsed, ParsedFields)
    assert (parsed["compression"], parsed["max_message_bytes"]) == ("gzip", "5MB")
    assert parsed["max_in_flight"] == (256 if name == "redpanda" else 10)
    if name == "redpanda":
        own = {"topic": "t", "compression": "zstd"}
        assert parse_config(config(output={name: own})).output.config["compression"] == "zstd"


def test_components_inside_of_others_and_resources_share_it_as_well() -> None:
    text = config(
        input={"broker": {"inputs": [{"redpanda_common": {"topics": ["t"]}}, {"stdin": {}}]}},
        output={"fallback": [{"resource": "r"}, {"drop": {}}]},
        output_resources=[{"label": "r", "redpanda": {"topic": "t"}}],
    )
    parsed = parse_config(text)
    inner = parsed.input.config["inputs"][0].config
    resource = parsed.resources[Kind.OUTPUT, "r"].config
    assert list(inner["seed_brokers"]) == list(resource["seed_brokers"]) == ["a:1,b:2"]


def wrong(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    return [f"{lint.message}; {lint.suggestion}" for lint in caught.value.lints]


def test_brokers_that_are_nowhere_are_missed_at_the_component() -> None:
    text = json.dumps({"input": {"redpanda": {"topics": ["t"]}}, "redpanda": {"client_id": "x"}})
    hint = "name them in the section redpanda, which components share"
    assert wrong(text) == [
        "input redpanda has no seed_brokers; name the brokers in seed_brokers, or " + hint
    ]
    text = json.dumps({"output": {"redpanda_common": {"topic": "t"}}})
    assert wrong(text) == ["output redpanda_common has no seed_brokers; " + hint]
    with pytest.raises(ConfigError, match="has no seed_brokers"):
        parse_component(Kind.OUTPUT, "redpanda: {topic: t}")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"seed_brokers": ["host:x"]}, "field seed_brokers has 'host:x'; expected host and"),
        ({"logs_topic": "x"}, "field redpanda has logs_topic and no seed_brokers"),
        ({"logs_level": "loud"}, "field logs_level: value 'loud' is not one of debug, info"),
        ({"idempotent_write": True, "acks": "none"}, "field redpanda: acks is none; idempotent"),
    ],
)
def test_what_is_wrong_with_the_section_is_told_there_and_once(
    fields: dict[str, Any], expected: str
) -> None:
    text = json.dumps({"redpanda": fields, "input": {"redpanda_common": {"topics": ["t"]}}})
    found = wrong(text)
    assert len(found) == 1 and found[0].startswith(expected), found


def test_a_file_of_resources_does_without_the_section_and_no_secret_is_shown(tmp_path) -> None:
    path = tmp_path / "resources.yaml"
    path.write_text("input_resources: [{label: r, redpanda_common: {topics: [t]}}]\n")
    assert lint_config(path) == ()
    shown = echo_config(parse_config(config(output={"redpanda": {"topic": "t"}})), {})
    assert "hush-hush" not in shown and "client_id: shared" in shown
    assert "redpanda:" not in echo_config(parse_config("{}"), {})


def test_the_section_has_what_connect_has() -> None:
    names = {field.name for field in REDPANDA_SECTION.children}
    connect = "seed_brokers client_id tls sasl metadata_max_age request_timeout_overhead tcp"
    connect += " conn_idle_timeout pipeline_id logs_topic logs_level status_topic rack_id"
    connect += " partitioner idempotent_write compression allow_auto_topic_creation timeout"
    connect += " max_message_bytes broker_write_max_bytes"
    assert set(connect.split()) <= names
