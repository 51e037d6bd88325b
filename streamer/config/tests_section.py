"""The `tests` section of a config: Benthos's unit tests of processors."""

from __future__ import annotations

from typing import Final

from streamer.spec import Field


def _optional(name: str, type_: str, description: str, **more: object) -> Field:
    return Field(name, type_, description, optional=True, **more)  # type: ignore[arg-type]


_MESSAGE: Final = (
    _optional("content", "string", "The message's text."),
    _optional("json_content", "unknown", "The message as a value."),
    _optional("file_content", "string", "A file with the message's text."),
    _optional("metadata", "unknown", "The message's metadata.", shape="map"),
)
_CONDITION: Final = (
    _optional("bloblang", "string", "A query that must be true.", mapping=True),
    _optional("content_equals", "string", "The text that the message must be."),
    _optional("content_matches", "string", "A regular expression that must match."),
    _optional("metadata_equals", "unknown", "Metadata that must be there.", shape="map"),
    _optional("file_equals", "string", "A file with the text that the message must be."),
    _optional("file_json_equals", "string", "A file with the value that it must be."),
    _optional("json_equals", "unknown", "The value that the message must be."),
    _optional("json_contains", "unknown", "A value that the message must hold."),
    _optional("file_json_contains", "string", "A file with a value that it must hold."),
)

TESTS: Final = Field(
    "tests",
    "object",
    "Unit tests of the config's processors.",
    optional=True,
    shape="array",
    advanced=True,
    children=(
        Field("name", "string", "What is tested."),
        _optional("environment", "string", "Environment variables of the test.", shape="map"),
        Field(
            "target_processors",
            "string",
            "A JSON Pointer, or a label, of the processors to run.",
            default="/pipeline/processors",
        ),
        Field("target_mapping", "string", "A file with a mapping to run instead.", default=""),
        _optional("mocks", "unknown", "Components to replace, by label or pointer.", shape="map"),
        _optional("input_batch", "object", "The messages in.", shape="array", children=_MESSAGE),
        _optional("input_batches", "object", "Batches in.", shape="2darray", children=_MESSAGE),
        _optional(
            "output_batches",
            "object",
            "What must hold for each message of each batch that comes out.",
            shape="2darray",
            children=_CONDITION,
        ),
        _optional("parallel", "bool", "Taken for compatibility.", deprecated=True),
    ),
)
