"""Writes what editors check configs and tests by: `python -m streamer.config.schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from streamer.components import catalog
from streamer.config.sections import SECTIONS
from streamer.config.templates.fields import TEMPLATE_FIELDS
from streamer.config.unit_tests.section import DEFINITION_FIELDS
from streamer.sdk.spec.json_schema import Schema, config_schema

_DIRECTORY: Final = Path(__file__).resolve().parents[2] / "schemas"
PATH: Final = _DIRECTORY / "config.schema.json"
TESTS_PATH: Final = _DIRECTORY / "tests.schema.json"
TEMPLATE_PATH: Final = _DIRECTORY / "template.schema.json"


def schema_text() -> str:
    """Return the schema of a config, with every component of the catalogue, as it is in the file.

    It has no date and no version: the same specs give the same text.
    """
    return _format_schema(config_schema("A config of streamer", SECTIONS, catalog.all_specs()))


def definitions_schema_text() -> str:
    """Return the schema of a file of test definitions, as it is in the file."""
    schema = config_schema("Unit tests of a config of streamer", DEFINITION_FIELDS, ())
    # No component stands in a file of tests, but for mocks, which may be of any kind.
    del schema["definitions"]
    return _format_schema(schema)


def template_schema_text() -> str:
    """Return the schema of a template, as it is in the file."""
    schema = config_schema("A template of streamer", TEMPLATE_FIELDS, ())
    # No component stands in a template but for what its mapping makes.
    del schema["definitions"]
    return _format_schema(schema)


def _format_schema(schema: Schema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(schema_text(), encoding="utf-8")
    TESTS_PATH.write_text(definitions_schema_text(), encoding="utf-8")
    TEMPLATE_PATH.write_text(template_schema_text(), encoding="utf-8")
