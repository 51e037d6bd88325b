"""Writes `schemas/config.schema.json`: `python -m streamer.config.schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from streamer import catalog
from streamer.config.sections import SECTIONS
from streamer.spec.json_schema import config_schema

PATH: Final = Path(__file__).resolve().parents[2] / "schemas" / "config.schema.json"


def schema_text() -> str:
    """Return the schema of a config, with every component of the catalogue, as it is in the file.

    It has no date and no version: the same specs give the same text.
    """
    schema = config_schema("A config of streamer", SECTIONS, catalog.specs())
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(schema_text(), encoding="utf-8")
