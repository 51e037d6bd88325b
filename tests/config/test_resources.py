"""Resources: of a config, of further files, and what refers to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.components.catalog import build_context
from streamer.config import lint_config, load_config
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.spec import Kind

USES = "pipeline: { processors: [ { resource: up } ] }\n"
UP = """\
processor_resources:
  - label: up
    mapping: root = content().uppercase()
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lints(config: str, *resources: str) -> list[str]:
    Path("c.yaml").write_text(config)
    return [str(lint) for lint in lint_config("c.yaml", env={}, resources=resources)]


def test_every_kind_with_components_has_its_section(files: Path) -> None:
    Path("c.yaml").write_text(
        UP
        + "input_resources: [{ label: a, generate: { mapping: root = 1 } }]\n"
        + "output_resources: [{ label: b, drop: {} }]\n"
        + "cache_resources: []\nrate_limit_resources: []\n"
    )
    found = load_config("c.yaml", env={}).resources
    assert {key: one.name for key, one in found.items()} == {
        (Kind.PROCESSOR, "up"): "mapping",
        (Kind.INPUT, "a"): "generate",
        (Kind.OUTPUT, "b"): "drop",
    }


def test_a_processor_resource_does_what_it_says_wherever_it_is_used(files: Path) -> None:
    nested = (
        "  - { label: twice, try: [ { resource: up }, { mapping: root = content() + b'!' } ] }\n"
    )
    Path("c.yaml").write_text(USES.replace("up", "twice") + UP + nested.replace("b'!'", '"!"'))
    config = load_config("c.yaml", env={})
    [processor] = build_context(config.resources).build_all(config.processors)
    [[message]] = processor.process([Message(b"a")], Execution(lambda: 0))
    assert message.raw == b"A!" and message.error is None


def test_a_file_brings_resources_along(files: Path) -> None:
    Path("more.yaml").write_text(UP.replace("uppercase()", 'uppercase() + env("X").or("")'))
    Path("c.yaml").write_text(USES)
    config = load_config("c.yaml", env={}, resources=["more.yaml"])
    assert config.resources[Kind.PROCESSOR, "up"].name == "mapping"
    assert lints(USES, "more.yaml") == []


def test_variables_are_replaced_in_a_file_of_resources(files: Path) -> None:
    Path("more.yaml").write_text(UP.replace("up", "${LABEL}", 1))
    Path("c.yaml").write_text(USES)
    assert load_config("c.yaml", env={"LABEL": "up"}, resources=["more.yaml"]).resources
    assert lints(USES.replace("{ resource: up }", ""), "more.yaml") == [
        "more.yaml(2,12) required environment variables were not set: [LABEL]; "
        "set it, or write ${LABEL:some default}"
    ]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            USES + UP.replace("label: up", "label: upp"),
            ["c.yaml(1,39) there is no processor resource with the label 'up'; did you mean upp?"],
        ),
        (
            USES,
            [
                "c.yaml(1,39) there is no processor resource with the label 'up'; "
                "processor_resources has none"
            ],
        ),
        (
            USES + "output_resources: [{ label: up, drop: {} }]",
            [
                "c.yaml(1,39) there is no processor resource with the label 'up'; "
                "'up' is the label of a resource of kind output"
            ],
        ),
        (
            USES + "processor_resources: [{ label: up, try: [{ resource: up }] }]",
            ["c.yaml(2,54) the resource 'up' uses itself: up → up"],
        ),
        (
            UP + "pipeline: { processors: [{ label: a, resource: up }] }",
            ["c.yaml(4,35) label field should be omitted when pointing to a resource"],
        ),
        (
            "pipeline: { processors: [ { resource: '' } ] }",
            ["c.yaml(1,39) no label is given; name one of processor_resources"],
        ),
        (
            USES + "processor_resources: [{ label: up, nonsense: {} }]",
            ["c.yaml(2,36) processor 'nonsense' is not known"],
        ),
        (
            "processor_resources: [{ mapping: root = this }]",
            ["c.yaml(1,23) this processor resource has no label; add `label: …`"],
        ),
        (
            UP + "output: { label: up, drop: {} }",
            ["c.yaml(4,18) label 'up' collides with a previously defined label at line 2"],
        ),
    ],
)
def test_what_is_wrong_with_resources(files: Path, config: str, expected: list[str]) -> None:
    assert lints(config) == expected


def test_a_cycle_is_found_across_files(files: Path) -> None:
    Path("one.yaml").write_text("processor_resources: [{ label: a, try: [{ resource: b }] }]")
    Path("two.yaml").write_text("processor_resources: [{ label: b, catch: [{ resource: a }] }]")
    assert lints("pipeline: { processors: [{ resource: a }] }", "one.yaml", "two.yaml") == [
        "two.yaml(1,55) the resource 'a' uses itself: a → b → a"
    ]


def test_labels_of_two_files_that_collide_are_both_placed(files: Path) -> None:
    Path("more.yaml").write_text(UP)
    assert lints(USES + UP, "more.yaml") == [
        "more.yaml(2,12) label 'up' collides with a previously defined label at c.yaml(3,12)"
    ]


def test_a_file_of_resources_alone_may_refer_to_others(files: Path) -> None:
    assert lints("processor_resources: [{ label: a, try: [{ resource: elsewhere }] }]") == []


def test_what_is_wrong_with_a_file_of_resources_is_placed_there(files: Path) -> None:
    Path("more.yaml").write_text("input: { stdin: {} }\n" + UP)
    Path("list.yaml").write_text("[]")
    assert lints(USES, "more.yaml", "list.yaml", "gone.yaml") == [
        "more.yaml(1,1) field input not recognised; expected one of cache_resources, "
        "input_resources, output_resources, parallel, processor_resources, rate_limit_resources, "
        "table_resources, tests",
        "list.yaml(1,1) a file of resources is an object, got an array; "
        "begin with `processor_resources:`, for example",
        "gone.yaml(1,1) there is no such file",
    ]
    with pytest.raises(ConfigError, match=r"gone\.yaml"):
        load_config("c.yaml", env={}, resources=["gone.yaml"])
