"""The JSON Schema for editors is fresh, valid, and takes what the loader takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from streamer.config.schema import PATH, schema_text

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.fixture(scope="module")
def schema() -> Any:
    return json.loads(schema_text())


def test_the_file_is_what_the_specs_give() -> None:
    written = PATH.read_text(encoding="utf-8")
    assert written == schema_text(), "stale: run `python -m streamer.config.schema`"


def test_it_is_a_valid_schema(schema: Any) -> None:
    jsonschema.Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_it_takes_the_examples(schema: Any, path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), schema)


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
