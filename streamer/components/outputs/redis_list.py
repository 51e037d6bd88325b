"""`redis_list`: "pushes messages onto the end of a Redis list", or to its beginning.

The list is created if it does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems
from streamer.connectors.redis.output_base import RedisOutput
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

KEY: Final = "key"
COMMAND: Final = "command"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "redis_list",
    "Pushes messages onto lists of Redis.",
    description="A batch is sent in one request; failed messages of it are sent again alone.",
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
            "`rpush` appends messages to the list, `lpush` prepends them.",
            access=Access.REMOTE,
            default="rpush",
            options=("rpush", "lpush"),
            advanced=True,
        ),
    ),
    check=join_checks(client_problems, batching_problems),
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
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> RedisOutput:
    """Compile the key; nothing is connected yet."""
    key, push = compile_interpolation(parsed[KEY]), parsed[COMMAND].upper()

    def command(batch: Batch, index: int, ex: Execution) -> Sequence[Any]:
        return push, interpolate(KEY, key, batch, index, ex), batch[index].raw

    return RedisOutput(command, parsed, context, output_policy(parsed, context))
