"""The JSON Schemas for editors are fresh, valid, and take what the loader takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator as Validator
from jsonschema import ValidationError

from streamer.components import catalog
from streamer.config.create import create_config
from streamer.config.schema import (
    PATH,
    TEMPLATE_PATH,
    TESTS_PATH,
    definitions_schema_text,
    schema_text,
    template_schema_text,
)
from streamer.config.unit_tests.definitions import is_definition
from streamer.sdk.spec import Kind

FILES = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
CONFIGS = [path for path in FILES if not is_definition(path)]
DEFINITIONS = [path for path in FILES if is_definition(path)]


TESTS = Path(__file__).parents[1]
WINDOWS = sorted((TESTS / "unit_tests" / "windows").glob("*.yaml"))
BROKEN = yaml.load((TESTS / "config" / "broken.yaml").read_text("utf-8"), yaml.CSafeLoader)
_DOCS = Path(__file__).parents[2] / "streamer" / "docs"
_CONFIG = re.compile(r"^```yaml config=[^\n]*\n(.*?)^```$", re.M | re.S)
SHOWN = [
    (page.name, text) for page in _DOCS.glob("*.md") for text in _CONFIG.findall(page.read_text())
]
# What a finding of these codes is about stands in the values of single fields, or in which there
# are; the rest is about mappings, about several places together, or about the text itself.
SEEN = {
    "bad_duration",
    "bad_label",
    "expected_array",
    "expected_bool",
    "expected_float",
    "expected_int",
    "expected_object",
    "expected_string",
    "invalid_option",
    "missing_component",
    "missing_field",
    "several_components",
    "should_omit",
    "unavailable_component",
    "unknown_component",
    "unknown_field",
}
UNSEEN = {
    "a variable in the place of a number",  # an editor does not know what it holds
    "a local rate limit on a cluster",  # there is none yet that an editor could offer
    "everything at once",  # it is no YAML before variables are replaced
}


class EditorsLoader(yaml.SafeLoader):
    """Reads YAML as editors do: a time is a string."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), EditorsLoader)


@pytest.fixture(scope="module")
def schema() -> Validator:
    """The schema of configs; that it is a valid one is a test of its own."""
    return Validator(json.loads(schema_text()))


@pytest.fixture(scope="module")
def tests_schema() -> Validator:
    return Validator(json.loads(definitions_schema_text()))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (PATH, schema_text),
        (TESTS_PATH, definitions_schema_text),
        (TEMPLATE_PATH, template_schema_text),
    ],
)
def test_the_file_is_what_the_specs_give(path: Path, text: Callable[[], str]) -> None:
    written = path.read_text(encoding="utf-8")
    assert written == text(), "stale: run `python -m streamer.config.schema`"


def test_it_is_a_valid_schema(schema: Validator, tests_schema: Validator) -> None:
    Validator.check_schema(schema.schema)
    Validator.check_schema(tests_schema.schema)


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_the_schema_of_tests_takes_the_examples(tests_schema: Validator, path: Path) -> None:
    tests_schema.validate(read(path))


@pytest.mark.parametrize(
    "definitions",
    [
        {"tset": []},
        {"tests": [{}]},
        {"tests": [{"name": "a", "steps": [{"sned": []}]}]},
        {"tests": [{"name": "a", "input_batches": [{}]}]},
        {"tests": [{"name": "a", "output_batches": [[{"json_is": 1}]]}]},
        {"tests": [{"name": "a", "dropped": {"late": "some"}}]},
    ],
)
def test_the_schema_of_tests_refuses_mistakes(tests_schema: Validator, definitions: Any) -> None:
    with pytest.raises(ValidationError):
        tests_schema.validate(definitions)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_it_takes_the_examples(schema: Validator, path: Path) -> None:
    schema.validate(read(path))


@pytest.mark.parametrize("path", WINDOWS, ids=lambda path: path.name)
def test_it_takes_configs_of_windows(schema: Validator, path: Path) -> None:
    schema.validate(read(path))


@pytest.mark.parametrize("text", [text for _, text in SHOWN], ids=[name for name, _ in SHOWN])
def test_it_takes_what_the_documentation_shows(schema: Validator, text: str) -> None:
    schema.validate(yaml.load(text, EditorsLoader))


@pytest.mark.parametrize("small", [True, False])
def test_it_takes_what_create_makes_of_every_component(schema: Validator, small: bool) -> None:
    parts = {Kind.INPUT: "{}//", Kind.PROCESSOR: "/{}/", Kind.OUTPUT: "//{}"}
    for kind, part in parts.items():
        for name in catalog.component_names(kind):
            text = create_config(part.format(name), small)
            schema.validate(yaml.load(text, EditorsLoader))


def _codes(case: Any) -> set[str]:
    return {finding.rpartition("[")[2][:-1] for finding in case["findings"]}


@pytest.mark.parametrize(
    "case",
    [case for case in BROKEN if _codes(case) & SEEN and case["name"] not in UNSEEN],
    ids=lambda case: case["name"],
)
def test_it_refuses_broken_configs(schema: Validator, case: Any) -> None:
    config = yaml.load(case["config"], EditorsLoader)
    assert not schema.is_valid(config)


@pytest.mark.parametrize(
    "size", ["10s", "1h30m", "1.5h", "-5s", "0", 0, "", "${SIZE:1m}", ".5s", "1µs"]
)
def test_it_takes_durations(schema: Validator, size: Any) -> None:
    schema.validate({"buffer": {"system_window": {"size": size}}})


@pytest.mark.parametrize("size", ["10", 10, "ten", "1x", "1h 30m", "10S", [], {}])
def test_it_refuses_what_is_no_duration(schema: Validator, size: Any) -> None:
    config = {"buffer": {"system_window": {"size": size}}}
    assert not schema.is_valid(config)


@pytest.mark.parametrize("level", ["INFO", "info", "Warn", "${LEVEL}"])
def test_it_takes_options_in_any_case(schema: Validator, level: str) -> None:
    schema.validate({"logger": {"level": level}})


@pytest.mark.parametrize(
    ("component", "taken"),
    [
        ({"type": "stdin"}, True),
        ({"type": "stdin", "plugin": {}}, True),
        ({"type": "stdin", "stdin": {}}, True),
        ({"label": "a", "stdin": {}, "processors": [{"noop": {}}]}, True),
        ({"resource": "a"}, True),
        ({"label": "b", "resource": "a"}, False),
        ({"label": "a"}, False),
        ({"stdin": {}, "generate": {"mapping": "root = 1"}}, False),
        ({"stdin": {}, "processors": []}, False),
    ],
)
def test_a_component_has_one_name(schema: Validator, component: Any, taken: bool) -> None:
    assert schema.is_valid({"input": component}) is taken


def test_an_unknown_component_is_one_mistake(schema: Validator) -> None:
    config = {"input": {"label": "a", "stdni": {}}}
    (error,) = schema.iter_errors(config)
    assert "'stdni' was unexpected" in error.message


@pytest.mark.parametrize(
    "config",
    [
        {"inptu": {}},
        {"input": {"stdni": {}}},
        {"input": {"generate": {}}},
        {"pipeline": {"threads": "two"}},
        {"pipeline": {"processors": {"noop": {}}}},
        {"output": {"file": {"path": []}}},
    ],
)
def test_it_refuses_mistakes(schema: Validator, config: Any) -> None:
    with pytest.raises(ValidationError):
        schema.validate(config)


def test_it_takes_a_variable_where_a_number_will_be(schema: Validator) -> None:
    schema.validate({"pipeline": {"threads": "${THREADS:2}"}})


def test_the_schema_of_templates_takes_a_template_and_no_other_field() -> None:
    schema = json.loads(template_schema_text())
    Validator.check_schema(schema)
    validator = Validator(schema)
    field = {"name": "a", "type": "int", "kind": "list", "default": [1]}
    template = {
        "name": "x",
        "type": "processor",
        "fields": [field],
        "mapping": "root.log = {}",
        "tests": [{"name": "one", "config": {}, "expected": {"log": {}}}],
    }
    validator.validate(template)
    for wrong in ({**template, "nmae": "y"}, {**template, "fields": [{"name": "a"}]}):
        with pytest.raises(ValidationError):
            validator.validate(wrong)
