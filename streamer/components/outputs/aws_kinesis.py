"""`aws_kinesis`: "sends messages to a Kinesis stream"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    session_problems,
)
from streamer.connectors.aws.output_base import (
    OutgoingRecord,
    RecordFailure,
    RecordOutput,
    RecordTooLargeError,
    placed_failures,
    retry_fields,
)
from streamer.connectors.aws.streams import stream_argument
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

STREAM: Final = "stream"
PARTITION_KEY: Final = "partition_key"
HASH_KEY: Final = "hash_key"

_MAX_RECORD_BYTES: Final = 10 << 20
_MAX_KEY_CHARS: Final = 256

SPEC: Final = Spec(
    Kind.OUTPUT,
    "aws_kinesis",
    "Sends messages to a stream of AWS Kinesis.",
    description=(
        "The messages of a batch are sent in requests of up to 500 records and 5 MiB; each may "
        "fail by itself. What the stream does not take for now, such as too much for a shard, is "
        "sent again as `max_retries` and `backoff` say. What it refuses for its content is "
        "rejected alone.\n"
        "\n"
        "A message may be sent again after a failure of the program. Kinesis does not keep the "
        "order of records of one request when some of them fail."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(
            STREAM,
            "string",
            "The name or the ARN of the stream.",
            examples=("foo", "arn:aws:kinesis:eu-west-1:123456789012:stream/foo"),
        ),
        Field(
            PARTITION_KEY,
            "string",
            "The key by which a message goes to a shard.",
            interpolated=True,
            examples=("${! this.id }",),
        ),
        Field(
            HASH_KEY,
            "string",
            "A hash key that takes the place of the hash of the partition key.",
            optional=True,
            interpolated=True,
            advanced=True,
        ),
        max_in_flight_field(),
        BATCHING_FIELD,
        *SESSION_FIELDS,
        *retry_fields(),
    ),
    check=join_checks(session_problems, batching_problems),
    examples=(
        Example(
            "Orders of a customer in one shard",
            "output:\n"
            "  aws_kinesis:\n"
            "    stream: orders\n"
            "    partition_key: ${! this.customer }\n"
            "    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


class _StreamService:
    """Sends records to a stream."""

    name = "kinesis"
    max_records = 500
    max_bytes = 5 << 20

    def __init__(self, parsed: ParsedFields) -> None:
        self._stream = parsed[STREAM]
        self._key = compile_interpolation(parsed[PARTITION_KEY])
        self._hash = compile_interpolation(parsed[HASH_KEY]) if parsed[HASH_KEY] else None

    def make_record(self, batch: Batch, index: int, ex: Execution) -> OutgoingRecord:
        """Return a message as Kinesis takes it."""
        data = batch[index].raw
        key = interpolate("partition key", self._key, batch, index, ex)
        if not 0 < len(key) <= _MAX_KEY_CHARS:
            raise MessageError(f"the partition key has {len(key)} characters; expected 1 to 256")
        size = len(data) + len(key.encode())
        if size > _MAX_RECORD_BYTES:
            raise RecordTooLargeError(f"the record has {size:,} bytes; Kinesis takes up to 10 MiB")
        entry: dict[str, Any] = {"Data": data, "PartitionKey": key}
        if self._hash is not None and (
            hash_key := interpolate("hash key", self._hash, batch, index, ex)
        ):
            entry["ExplicitHashKey"] = hash_key
        return OutgoingRecord(self._stream, entry, size)

    def put(self, client: Any, target: str, entries: Sequence[Any]) -> Mapping[int, RecordFailure]:
        """Send records to the stream."""
        answer = client.put_records(Records=list(entries), **stream_argument(target))
        return placed_failures(answer.get("Records", ()))

    def check(self, client: Any) -> str:
        """Request a summary of the stream."""
        answer = client.describe_stream_summary(**stream_argument(self._stream))
        status = answer["StreamDescriptionSummary"]["StreamStatus"]
        return f"the stream is {status.lower()}"


def build(parsed: ParsedFields, context: BuildContext) -> RecordOutput:
    """Compile the fields; nothing is connected yet."""
    return RecordOutput(_StreamService(parsed), parsed, context)
