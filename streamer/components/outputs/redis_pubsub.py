"""`redis_pubsub`: "publishes messages through the Redis PubSub model"."""

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
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Package, ParsedFields, Spec

CHANNEL: Final = "channel"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "redis_pubsub",
    "Publishes messages in channels of Redis.",
    description=(
        "Redis keeps nothing of what is published: who does not listen then will not get it."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(CHANNEL, "string", "The channel.", interpolated=True, examples=("events",)),
        max_in_flight_field(),
        BATCHING_FIELD,
    ),
    check=batched_output_problems,
    examples=(
        Example(
            "A channel for each kind",
            "output:\n"
            "  redis_pubsub:\n"
            "    url: redis://localhost:6379\n"
            "    channel: events:${! this.kind }\n",
        ),
    ),
    categories=("Services",),
    delivery="at least once to those who listen",
    requires=(Package("redis"),),
)


def build(parsed: ParsedFields, context: BuildContext) -> RedisOutput:
    """Compile the channel; nothing is connected yet."""
    channel = compile_interpolation(parsed[CHANNEL])

    def command(batch: Batch, index: int, ex: Execution) -> Sequence[Any]:
        try:
            return "PUBLISH", channel.text_of(batch, index, ex), batch[index].raw
        except MessageError as error:
            raise MessageError(f"channel interpolation error: {error}") from None

    output = RedisOutput(command, lambda: shared_client(parsed, context), parsed)
    output.max_in_flight = parsed[MAX_IN_FLIGHT]
    output.policy = output_policy(parsed, context)
    return output
