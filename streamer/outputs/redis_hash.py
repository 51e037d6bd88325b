"""`redis_hash`: "sets Redis hash objects using the HMSET command".

The fields come from the metadata, then from the document, then from the map `fields`; those that
come later win.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.errors import MessageError
from streamer.message import Batch, Execution, Message
from streamer.pipeline.per_message import document
from streamer.redisdb import CLIENT_FIELDS, client, client_problems
from streamer.redisdb.sending import RedisOutput
from streamer.redisdb.values import GO_NAMES, argument
from streamer.sending import MAX_IN_FLIGHT, max_in_flight_field
from streamer.spec import BuildContext, Example, Field, Kind, Package, Parsed, Spec

KEY: Final = "key"
WALK_METADATA: Final = "walk_metadata"
WALK_JSON_OBJECT: Final = "walk_json_object"
FIELDS: Final = "fields"


def _problems(parsed: Parsed) -> Iterator[tuple[str, str]]:
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
        Field(WALK_METADATA, "bool", "Whether all metadata become fields.", default=False),
        Field(
            WALK_JSON_OBJECT,
            "bool",
            "Whether the keys and values of the message become fields.",
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
    requires=(Package("redis"),),
)


def _walked(message: Message) -> dict[str, Any]:
    try:
        found = document(message)
        if isinstance(found, dict):
            return found
        name = GO_NAMES.get(type(found), "json.Number")
        raise MessageError(f"expected JSON object, found '{name}'")
    except MessageError as error:
        raise MessageError(f"failed to walk JSON object: {error}") from None


def build(parsed: Parsed, context: BuildContext) -> RedisOutput:
    """Compile the key and the fields; nothing is connected yet."""
    key = compile_interpolation(parsed[KEY])
    fields = {name: compile_interpolation(text) for name, text in parsed[FIELDS].items()}

    def command(batch: Batch, index: int, ex: Execution) -> Sequence[Any]:
        # Redpanda Connect's output sees one message at a time, not the batch.
        message = [batch[index]]
        what = "key"
        found: dict[str, Any] = {}
        try:
            name = key.text_of(message, 0, ex)
        except MessageError as error:
            raise MessageError(f"key interpolation error: {error}") from None
        if parsed[WALK_METADATA]:
            found.update(batch[index].meta)
        if parsed[WALK_JSON_OBJECT]:
            found.update(_walked(batch[index]))
        try:
            for what, text in fields.items():
                found[what] = text.text_of(message, 0, ex)
        except MessageError as error:
            raise MessageError(f"field {what} interpolation error: {error}") from None
        pairs = [part for item in found.items() for part in (item[0], argument(item[1]))]
        return "HMSET", name, *pairs

    output = RedisOutput(command, lambda: client(parsed, context), parsed)
    output.max_in_flight = parsed[MAX_IN_FLIGHT]
    return output
