"""`aws_kinesis`: "receive messages from one or more Kinesis streams".

A record goes to the disk together with its sequence number, from which the next start goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.aws.fields import (
    CREDENTIALS,
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    credentials_problems,
    session_problems,
)
from streamer.connectors.aws.stream_session import START_FROM_OLDEST, STREAMS, StreamInput
from streamer.connectors.aws.streams import parse_streams
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.batch_chunks import (
    INPUT_BATCHING,
    input_batching,
    input_batching_problems,
)
from streamer.sdk.processing.batching import BATCHING
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

DYNAMODB: Final = "dynamodb"


def _streams_problem(streams: Any) -> str | None:
    try:
        return None if parse_streams(streams) else "is an empty list; expected a name or an ARN"
    except ValueError as error:
        return f"has {error}"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from session_problems(parsed)
    yield from credentials_problems(parsed[DYNAMODB][CREDENTIALS], f"{DYNAMODB}.{CREDENTIALS}")
    yield from input_batching_problems(parsed[BATCHING], BATCHING)


def _without_effect(name: str, default: str, why: str, advanced: bool = False) -> Field:
    return duration_field(name, f"Has no effect: {why}.", default=default, advanced=advanced)


_ALONE: Final = "a stream reads all shards by itself"

SPEC: Final = Spec(
    Kind.INPUT,
    "aws_kinesis",
    "Reads streams of AWS Kinesis.",
    description=(
        "The driver reads all shards of the streams, up to eight at once, and writes the records "
        "to its disk together with their sequence numbers. The next start goes on behind these: "
        "each record is read once. Shards that were split or merged are read before those that "
        "they have become, so the order of a partition key is kept.\n"
        "\n"
        "Positions are in the checkpoint; there is no table of DynamoDB, and positions in one of "
        "Redpanda Connect are not taken over. Two programs that read a stream each get all of it; "
        "name shards, such as `foo:0`, to divide them. If a stream is away for longer than Kinesis "
        "keeps records, those before are lost.\n"
        "\n"
        "The metadata are `kinesis_stream`, `kinesis_shard`, `kinesis_partition_key` and "
        "`kinesis_sequence_number`."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(
            STREAMS,
            "string",
            "Names or ARNs of streams; an item may have several, separated by commas. With `:` and "
            "a shard behind a name, only this shard is read.",
            shape="array",
            check=_streams_problem,
            examples=(["foo", "arn:aws:kinesis:eu-west-1:123456789012:stream/foo"], ["foo:0"]),
        ),
        Field(
            DYNAMODB,
            "object",
            "Has no effect: the checkpoint has the positions.",
            advanced=True,
            children=(
                Field("table", "string", "The name of the table.", default=""),
                Field("create", "bool", "True to create the table.", default=False),
                Field(
                    "billing_mode",
                    "string",
                    "How the table is billed.",
                    default="PAY_PER_REQUEST",
                    options=("PROVISIONED", "PAY_PER_REQUEST"),
                    advanced=True,
                ),
                Field("read_capacity_units", "int", "Reads in a second.", default=0, advanced=True),
                Field(
                    "write_capacity_units", "int", "Writes in a second.", default=0, advanced=True
                ),
                *SESSION_FIELDS,
            ),
        ),
        Field(
            "checkpoint_limit",
            "int",
            "Has no effect: records are on the disk before they are processed.",
            default=1024,
        ),
        AUTO_REPLAY_NACKS_FIELD,
        _without_effect("commit_period", "5s", "positions are written with the records"),
        _without_effect("steal_grace_period", "2s", _ALONE),
        _without_effect("rebalance_period", "30s", _ALONE, advanced=True),
        _without_effect("lease_period", "30s", _ALONE, advanced=True),
        Field(
            START_FROM_OLDEST,
            "bool",
            "True to begin a stream for which there are no positions at its oldest record, false "
            "to begin at the time of the first start.",
            default=True,
        ),
        *SESSION_FIELDS,
        INPUT_BATCHING,
    ),
    check=_problems,
    batching=lambda parsed: input_batching(parsed[BATCHING]),
    examples=(
        Example(
            "A stream from its beginning",
            "input:\n  aws_kinesis:\n    streams: [orders]\n    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    begin={"streams": ["orders"]},
    delivery="exactly once onto the driver's disk, by sequence numbers",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> StreamInput:
    """Take the fields; it is connected once it is opened."""
    return StreamInput(parsed, ComponentRef(context.component).fields)
