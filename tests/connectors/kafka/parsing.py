"""Reads fields as a config's, without a component around them."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from streamer.config.components import read_component
from streamer.config.fields import read_fields
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, from_python
from streamer.config.read_context import ReadContext
from streamer.config.source_map import Source
from streamer.connectors.kafka.cluster.connection_fields import (
    KAFKA_CONNECTION,
    TCP_FIELD,
    connection_problems,
    seed_connection,
)
from streamer.sdk.spec import Field, ParsedFields

SEED_FIELDS = (*seed_connection("1m"), TCP_FIELD)


def read(fields: Iterable[Field], text: str) -> tuple[ParsedFields, list[str]]:
    """Return what the fields of a YAML text are, and what is wrong with each by itself."""
    findings = Findings()
    source = Source("", text)
    node = from_python(yaml.safe_load(text) or {}, source)
    assert isinstance(node, Mapping)
    parsed = read_fields(ReadContext(findings, read_component), fields, node, "", node)
    return parsed, [lint.message for lint in findings.to_sorted()]


def connection_fields(text: str) -> ParsedFields:
    """Return the fields of a connection, as `kafka` or as the others have them; all is right."""
    parsed, wrong = read(KAFKA_CONNECTION if "addresses" in text else SEED_FIELDS, text)
    assert not wrong, wrong
    problems = list(connection_problems(parsed))
    assert not problems, problems
    return parsed


def problems(text: str) -> list[str]:
    """Return what is wrong with the fields of a connection."""
    parsed, wrong = read(KAFKA_CONNECTION if "addresses" in text else SEED_FIELDS, text)
    return wrong or [f"{name}: {text}" for name, text in connection_problems(parsed)]
