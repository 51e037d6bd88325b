"""`redis_hash`: "sets Redis hash objects using the HMSET command".

The fields come from the metadata, then from the document, then from the map `fields`; those that
come later win.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems
from streamer.connectors.redis.output_base import RedisOutput
from streamer.connectors.redis.values import GO_NAMES, to_argument
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.per_message import parse_document
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

KEY: Final = "key"
WALK_METADATA: Final = "walk_metadata"
WALK_JSON_OBJECT: Final = "walk_json_object"
FIELDS: Final = "fields"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    if not (parsed[WALK_METADATA] or parsed[WALK_JSON_OBJECT] or parsed[FIELDS]):
        yield "", "at least one mechanism for setting fields must be enabled"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "redis_hash",
    "Sets fields of hashes of Redis.",
    description=(
        "The fields are the message's metadata (`walk_metadata`), its keys and values, when it is "
        "an object of texts and numbers (`walk_json_object`), and those of `fields`; the later win."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            KEY,
            "string",
            "The key of the hash.",
            interpolated=True,
            examples=("${! @.kafka_key }", "${! this.doc.id }"),
        ),
        Field(WALK_METADATA, "bool", "True if all metadata become fields.", default=False),
        Field(
            WALK_JSON_OBJECT,
            "bool",
            "True if the keys and values of the message become fields.",
            default=False,
        ),
        Field(FIELDS, "string", "Further fields.", default={}, shape="map", interpolated=True),
        max_in_flight_field(),
    ),
    check=_problems,
    examples=(
        Example(
            "The last state of each user",
            "output:\n"
            "  redis_hash:\n"
            "    url: redis://localhost:6379\n"
            "    key: user:${! this.id }\n"
            "    walk_json_object: true\n"
            "    fields:\n"
            "      seen: ${! now() }\n",
        ),
    ),
    begin={"walk_metadata": True},
    categories=("Services",),
    requires=PACKAGES,
)


def _document_fields(message: Message) -> dict[str, Any]:
    try:
        value = parse_document(message)
        if isinstance(value, dict):
            return value
        name = GO_NAMES.get(type(value), "json.Number")
        raise MessageError(f"expected JSON object, found '{name}'")
    except MessageError as error:
        raise MessageError(f"failed to walk JSON object: {error}") from None


def build(parsed: ParsedFields, context: BuildContext) -> RedisOutput:
    """Compile the key and the fields; nothing is connected yet."""
    key = compile_interpolation(parsed[KEY])
    fields = {name: compile_interpolation(text) for name, text in parsed[FIELDS].items()}

    def command(batch: Batch, index: int, ex: Execution) -> Sequence[Any]:
        # Redpanda Connect's output sees one message at a time, not the batch.
        message = [batch[index]]
        values: dict[str, Any] = {}
        name = interpolate(KEY, key, message, 0, ex)
        if parsed[WALK_METADATA]:
            values.update(batch[index].meta)
        if parsed[WALK_JSON_OBJECT]:
            values.update(_document_fields(batch[index]))
        for field, text in fields.items():
            values[field] = interpolate(f"field {field}", text, message, 0, ex)
        pairs = [part for item in values.items() for part in (item[0], to_argument(item[1]))]
        return "HMSET", name, *pairs

    return RedisOutput(command, parsed, context)
