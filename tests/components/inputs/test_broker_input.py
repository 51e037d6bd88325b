"""The `broker` input: names, copies, resources, and the processors of each of its inputs."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import make_plan
from streamer.plan.component_lookup import leaf_inputs
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import built

GENERATE = "generate: {{count: {count}, interval: '', mapping: 'root.n = {name}'}}"


def child(name: str, count: int = 2) -> str:
    return GENERATE.format(name=f'"{name}"', count=count)


def names(text: str) -> list[str]:
    return list(built(text).sources)


def test_inputs_are_named_by_their_labels_or_places() -> None:
    text = f"""
input_resources: [{{label: shared, {child("r")}}}]
input:
  broker:
    inputs:
      - {{label: one, {child("a")}}}
      - {{{child("b")}}}
      - resource: shared
      - resource: shared
"""
    assert names(text) == ["one", "#1", "shared", "shared#3"]


def test_copies_are_inputs_of_their_own() -> None:
    inputs = f"[{{label: a, {child('a')}}}, {{{child('b')}}}]"
    assert names(f"input: {{broker: {{copies: 2, inputs: {inputs}}}}}") == ["a", "#1", "a#2", "#3"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("inputs: []", "expected one input at least"),
        ("copies: 0, inputs: [stdin: {}]", "1 or more"),
    ],
)
def test_a_broker_without_inputs_is_refused(fields: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_config(f"input: {{broker: {{{fields}}}}}")


NESTED = f"""
input_resources:
  - label: shared
    {child("r", 1)}
    processors: [mapping: 'root = this.n + " resource"']
input:
  broker:
    inputs:
      - {{label: one, {child("a", 1)}, processors: [mapping: 'root = this.n + " own"']}}
      - resource: shared
        processors: [mapping: 'root = content() + " beside"']
      - broker: {{inputs: [{{label: deep, {child("d", 1)}}}]}}
        processors: [mapping: 'root = this.n + " inner"']
  processors: [mapping: 'root = content() + " outer"']
output: {{stdout: {{}}}}
"""


def test_messages_go_through_the_processors_of_all_that_they_are_in() -> None:
    plan = make_plan(parse_config(NESTED))
    source = built(NESTED)
    end = source.latest_offset(source.initial_offset(), 0, Limit())
    stage = StatelessStage(TaskPlan.of(plan))
    frames = [
        frame
        for number, piece in enumerate(source.split(source.initial_offset(), end.offset, 1))
        for frame in stage.frames(SourcePiece(source, number, piece))
    ]
    assert [frame.body for frame in frames if frame.kind == 0] == [
        b"a own outer\n",
        b"r resource beside outer\n",
        b"d inner outer\n",
    ]
    assert end.is_ended


def test_a_plan_knows_the_inputs_behind_its_input() -> None:
    plan = make_plan(parse_config(NESTED))
    found = list(leaf_inputs(plan.input, plan.resources))
    assert [one.label for one in found] == ["one", "shared", "deep"]
    assert [len(one.processors) for one in found] == [2, 3, 2]
