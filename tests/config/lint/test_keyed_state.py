"""What keeps state by key is refused where it could keep none, with its place and what to do."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError

KEYED = "buffer: { keyed_state: { key_mapping: root = this.k } }\n"
WINDOWS = "buffer: { tumbling_window: { size: 1m } }\n"


def found(text: str) -> list[tuple[int, str, str]]:
    try:
        parse_config(text)
    except ConfigError as error:
        assert {one.code for one in error.lints} == {"no_keyed_state"}
        return [(one.line, one.message, one.suggestion) for one in error.lints]
    return []


@pytest.mark.parametrize("buffer", [KEYED, WINDOWS])
@pytest.mark.parametrize(
    "processor",
    [
        "mapping: root = lag(this)",
        "mutation: root.a = acc_count()",
        "bloblang: root = latest(this)",
        "branch: { processors: [ { mapping: root = had_changed(this) } ] }",
        "switch: [ { check: 'true', processors: [ { throttle: { period: 1s } } ] } ]",
        "deduplicate: {}",
    ],
)
def test_it_may_stand_in_the_pipeline_behind_keys(buffer, processor) -> None:
    assert found(f"{buffer}pipeline: {{ processors: [ {{ {processor} }} ] }}") == []


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "pipeline: { processors: [ { mapping: root = lag(this) } ] }",
            "lag(this) keeps state by key, but behind the buffer none messages have no key",
            "use the buffer keyed_state with a key_mapping, or one with windows",
        ),
        (
            "buffer: { memory: {} }\npipeline: { processors: [ { throttle: { period: 1s } } ] }",
            "throttle keeps state by key, but behind the buffer memory messages have no key",
            "use the buffer keyed_state with a key_mapping, or one with windows",
        ),
        (
            f"{KEYED}input: {{ stdin: {{}}, processors: [ {{ mapping: root = lag(this) }} ] }}",
            "lag(this) in input.processors.0.mapping: state by key is kept in mapping, mutation "
            "and bloblang processors of the pipeline",
            "move it to pipeline.processors",
        ),
        (
            f"{KEYED}output: {{ stdout: {{}}, processors: [ {{ deduplicate: {{}} }} ] }}",
            "deduplicate in output.processors.0.deduplicate: state by key is kept in mapping, "
            "mutation and bloblang processors of the pipeline",
            "move it to pipeline.processors",
        ),
        (
            "buffer: { keyed_state: { key_mapping: root = lag(this.k) } }",
            "lag(this.k) in buffer.keyed_state: state by key is kept in mapping, mutation and "
            "bloblang processors of the pipeline",
            "work the value out in the pipeline, behind the buffer",
        ),
        (
            f"{KEYED}pipeline: {{ processors: [ {{ log: {{ message: '${{! lag(this) }}' }} }} ] }}",
            "lag in a field of log: state by key is kept in mapping, mutation and bloblang "
            "processors of the pipeline",
            "work the value out in a mapping before it, and put it into a field or metadata",
        ),
        (
            f"{KEYED}pipeline: {{ processors: [ {{ parallel: {{ processors: "
            "[ { mapping: root = acc_count() } ] } } ] }",
            "acc_count() keeps state by key, but within parallel messages overtake one another",
            "move it out of parallel",
        ),
    ],
)
def test_elsewhere_it_is_an_error(text, message, hint) -> None:
    [(_, said, what_to_do)] = found(text)
    assert (said, what_to_do) == (message, hint)


def test_a_processor_resource_may_keep_state_for_whoever_has_keys() -> None:
    resource = "processor_resources: [ { label: a, mapping: root = lag(this) } ]"
    assert found(resource) == []
