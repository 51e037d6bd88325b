"""`redis_streams`: adds messages to streams of Redis.

It "pushes messages to a Redis (v5.0+) Stream (which is created if it doesn't already exist) using
the XADD command". An entry has the message under one key, and the metadata under keys of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems
from streamer.connectors.redis.output_base import RedisOutput
from streamer.connectors.redis.values import to_argument
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.metadata_filter import METADATA_EXCLUDE_FIELD, ExcludedMetadata
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

STREAM: Final = "stream"
ID: Final = "id"
BODY_KEY: Final = "body_key"
MAX_LENGTH: Final = "max_length"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "redis_streams",
    "Adds messages to streams of Redis.",
    description=(
        "An entry of a stream has the message under `body_key`, and each of its metadata "
        "under a key of its own. A batch is sent in one request; failed messages of it are "
        "sent again alone."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(STREAM, "string", "The stream.", interpolated=True, examples=("events",)),
        Field(
            ID,
            "string",
            "The id of the entry; `*` leaves it to Redis.",
            default="*",
            interpolated=True,
            examples=("*", "${! @redis_stream }", "${! counter() }-0"),
        ),
        Field(BODY_KEY, "string", "The key of the message itself.", default="body"),
        Field(
            MAX_LENGTH,
            "int",
            "About how many entries the stream may have, or 0 for no bound: Redis removes the "
            "oldest when it can do so at little cost.",
            default=0,
        ),
        max_in_flight_field(),
        METADATA_EXCLUDE_FIELD,
        BATCHING_FIELD,
    ),
    check=join_checks(client_problems, batching_problems),
    examples=(
        Example(
            "A bounded stream",
            "output:\n"
            "  redis_streams:\n"
            "    url: redis://localhost:6379\n"
            "    stream: events\n"
            "    max_length: 10000\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> RedisOutput:
    """Compile the stream and the id; nothing is connected yet."""
    stream, entry = compile_interpolation(parsed[STREAM]), compile_interpolation(parsed[ID])
    metadata = ExcludedMetadata(parsed)
    bound = ["MAXLEN", "~", parsed[MAX_LENGTH]] if parsed[MAX_LENGTH] > 0 else []

    def command(batch: Batch, index: int, ex: Execution) -> Sequence[Any]:
        message = batch[index]
        values: dict[str, Any] = {
            key: to_argument(value) for key, value in metadata.select(message.meta)
        }
        values[parsed[BODY_KEY]] = message.raw
        target = interpolate(STREAM, stream, batch, index, ex)
        identity = interpolate(ID, entry, batch, index, ex)
        pairs = [part for item in values.items() for part in item]
        return "XADD", target, *bound, identity, *pairs

    return RedisOutput(command, parsed, context, output_policy(parsed, context))
