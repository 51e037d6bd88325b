"""`json_schema`: checks messages against a JSON schema; those that do not fit are marked as failed.

"Please refer to the json schema website for information and tutorials regarding the syntax of the
schema." Drafts 4 to 7 are known, as in Benthos.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.runtime.json_schemas import compile_schema
from streamer.connectors.formats.schema_text import (
    SCHEMA,
    SCHEMA_PATH,
    read_schema_text,
    schema_fields,
)
from streamer.connectors.locations.stores import location_packages
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import Change, PerMessageProcessor, parse_document
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

_LOAD_ERROR_PREFIX: Final = "failed to load JSON schema definition: "


def _schema_problem(text: str) -> str | None:
    try:
        compile_schema(text)
    except ArgumentError as e:
        return (
            f"{_LOAD_ERROR_PREFIX}{str(e).removeprefix('failed to parse json schema definition: ')}"
        )
    return None


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not parsed[SCHEMA] and not parsed[SCHEMA_PATH]:
        yield "", "either schema or schema_path must be provided"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "json_schema",
    "Checks messages against a JSON schema, and marks invalid ones as failed.",
    description=(
        "A valid message passes unchanged. The error of an invalid one has a line for each "
        "problem. A schema is one document: references to others are not followed."
    ),
    fields=(*schema_fields(_schema_problem, "file:///etc/schemas/person.json", optional=True),),
    check=_problems,
    examples=(
        Example(
            "Drop what does not fit",
            "pipeline:\n"
            "  processors:\n"
            "    - json_schema:\n"
            '        schema: \'{"type":"object","required":["id"]}\'\n'
            "    - catch:\n"
            "        - log: {level: ERROR, message: '${! error() }'}\n"
            "        - mapping: root = deleted()\n",
        ),
    ),
    begin={"schema": '{"type": "object"}'},
    categories=("Mapping",),
    requires=location_packages(SCHEMA_PATH),
    limits="one document; drafts 4 to 7",
)


def _make_check(text: str) -> Change:
    try:
        check = compile_schema(text)
    except ArgumentError as e:
        raise StreamerError(f"{_LOAD_ERROR_PREFIX}{e}") from None

    def check_message(message: Message, ex: Execution) -> Message:
        value = parse_document(message)
        try:
            check(value)
        except RecursionError:
            raise MessageError("the document is nested too deep to be checked") from None
        return message

    return check_message


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Read the schema."""
    return PerMessageProcessor(
        _make_check(read_schema_text(parsed, context, _LOAD_ERROR_PREFIX)),
        ComponentRef(context.component),
    )
