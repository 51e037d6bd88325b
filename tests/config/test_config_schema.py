"""The JSON Schemas for editors are fresh, valid, and take what the loader takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from streamer.config.definitions import is_definition
from streamer.config.schema import (
    PATH,
    TEMPLATE_PATH,
    TESTS_PATH,
    definitions_schema_text,
    schema_text,
    template_schema_text,
)

FILES = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
CONFIGS = [path for path in FILES if not is_definition(path)]
DEFINITIONS = [path for path in FILES if is_definition(path)]


class EditorsLoader(yaml.SafeLoader):
    """Reads YAML as editors do: a time is a string."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), EditorsLoader)


@pytest.fixture(scope="module")
def schema() -> Any:
    return json.loads(schema_text())


@pytest.fixture(scope="module")
def tests_schema() -> Any:
    return json.loads(definitions_schema_text())


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


def test_it_is_a_valid_schema(schema: Any, tests_schema: Any) -> None:
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator.check_schema(tests_schema)


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_the_schema_of_tests_takes_the_examples(tests_schema: Any, path: Path) -> None:
    jsonschema.validate(read(path), tests_schema)


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
def test_the_schema_of_tests_refuses_mistakes(tests_schema: Any, definitions: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(definitions, tests_schema)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_it_takes_the_examples(schema: Any, path: Path) -> None:
    jsonschema.validate(read(path), schema)


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
def test_it_refuses_mistakes(schema: Any, config: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, schema)


def test_it_takes_a_variable_where_a_number_will_be(schema: Any) -> None:
    jsonschema.validate({"pipeline": {"threads": "${THREADS:2}"}}, schema)


def test_the_schema_of_templates_takes_a_template_and_no_other_field() -> None:
    schema = json.loads(template_schema_text())
    jsonschema.Draft7Validator.check_schema(schema)
    field = {"name": "a", "type": "int", "kind": "list", "default": [1]}
    template = {
        "name": "x",
        "type": "processor",
        "fields": [field],
        "mapping": "root.log = {}",
        "tests": [{"name": "one", "config": {}, "expected": {"log": {}}}],
    }
    jsonschema.validate(template, schema)
    for wrong in ({**template, "nmae": "y"}, {**template, "fields": [{"name": "a"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
