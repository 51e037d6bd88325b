"""`redis_pubsub`: "publishes messages through the Redis PubSub model"."""

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
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

CHANNEL: Final = "channel"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "redis_pubsub",
    "Publishes messages in channels of Redis.",
    description=(
        "Redis does not store published messages: clients that do not listen at that moment "
        "miss them."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(CHANNEL, "string", "The channel.", interpolated=True, examples=("events",)),
        max_in_flight_field(),
        BATCHING_FIELD,
    ),
    check=join_checks(client_problems, batching_problems),
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
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> RedisOutput:
    """Compile the channel; nothing is connected yet."""
    channel = compile_interpolation(parsed[CHANNEL])

    def command(batch: Batch, index: int, ex: Execution) -> Sequence[Any]:
        return "PUBLISH", interpolate(CHANNEL, channel, batch, index, ex), batch[index].raw

    return RedisOutput(command, parsed, context, output_policy(parsed, context))
