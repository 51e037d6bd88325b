"""Resources stand in the place of what refers to them."""

import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.plan import Plan, make_plan
from streamer.plan.component_lookup import get_resource
from streamer.sdk.spec import Kind

WINDOW = "buffer: { system_window: { size: 10s, late_output: rest } }\n"
REST = """\
output_resources:
  - label: rest
    file: { path: rest.jsonl }
    processors: [ { mapping: root = 2 } ]
"""


def plan(text: str) -> Plan:
    return make_plan(parse_config(text))


def test_a_resource_that_groups_gives_the_key_and_folds():
    text = (
        WINDOW
        + "pipeline: { processors: [ { resource: by_id }, { resource: by_id } ] }\n"
        + "processor_resources:\n"
        + "  - { label: by_id, group_by_value: { value: '${! json(\"id\") }' } }\n"
        + REST
    )
    made = plan(text)
    assert [one.name for one in made.processors] == ["group_by_value", "group_by_value"]
    assert made.key is not None
    assert (made.key.text, made.key.source) == ('${! json("id") }', "processor_resources.0")
    assert made.late_output is not None and made.late_output.name == "file"


def test_an_input_runs_the_processors_of_its_resource_first_and_an_output_last():
    made = plan(
        "input: { resource: src, processors: [ { mapping: root = 1 } ] }\n"
        "input_resources: [ { label: src, stdin: {}, processors: [ { mapping: root = 2 } ] } ]\n"
        "output: { resource: rest, processors: [ { mapping: root = 1 } ] }\n" + REST
    )
    assert (made.input.name, made.output.name) == ("stdin", "file")
    assert [one.config for one in made.input.processors] == ["root = 2", "root = 1"]
    assert [one.config for one in made.output.processors] == ["root = 1", "root = 2"]
    assert made.fingerprint["input"] == "stdin"


def test_a_resource_that_is_not_there_is_named():
    made = plan(REST)
    message = r"there is no output resource with the label 'rst'; output_resources has rest"
    with pytest.raises(StreamerError, match=message):
        get_resource(made.resources, Kind.OUTPUT, "rst")
