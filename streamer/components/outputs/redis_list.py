"""`redis_list`: "pushes messages onto the end of a Redis list", or to its beginning.

The list is created if it does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.redis import CLIENT_FIELDS, shared_client
from streamer.connectors.redis.output_base import RedisOutput, batched_output_problems
from streamer.core.errors import MessageError
from streamer.core.message import Batch, Execution
from streamer.sdk.output import MAX_IN_FLIGHT, max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, output_policy
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
)

KEY: Final = "key"
COMMAND: Final = "command"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "redis_list",
    "Pushes messages onto lists of Redis.",
    description="A batch is sent in one go; what fails of it is sent again by itself.",
    fields=(
        *CLIENT_FIELDS,
        Field(
            KEY,
            "string",
            "The key of the list.",
            interpolated=True,
            examples=("some_list", "${! @.kafka_key }", "${! this.doc.id }"),
        ),
        max_in_flight_field(),
        BATCHING_FIELD,
        Field(
            COMMAND,
            "string",
            "Whether messages go to the list's end (`rpush`) or to its begin (`lpush`).",
            access=Access.REMOTE,
            default="rpush",
            options=("rpush", "lpush"),
            advanced=True,
        ),
    ),
    check=batched_output_problems,
    examples=(
        Example(
            "A list for each kind",
            "output:\n"
            "  redis_list:\n"
            "    url: redis://localhost:6379\n"
            "    key: events:${! this.kind }\n",
        ),
    ),
    categories=("Services",),
    requires=(Package("redis"),),
)


def build(parsed: ParsedFields, context: BuildContext) -> RedisOutput:
    """Compile the key; nothing is connected yet."""
    key, push = compile_interpolation(parsed[KEY]), parsed[COMMAND].upper()

    def command(batch: Batch, index: int, ex: Execution) -> Sequence[Any]:
        try:
            return push, key.text_of(batch, index, ex), batch[index].raw
        except MessageError as error:
            raise MessageError(f"key interpolation error: {error}") from None

    output = RedisOutput(command, lambda: shared_client(parsed, context), parsed)
    output.max_in_flight = parsed[MAX_IN_FLIGHT]
    output.policy = output_policy(parsed, context)
    return output
