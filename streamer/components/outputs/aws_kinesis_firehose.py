"""`aws_kinesis_firehose`: "sends messages to a Kinesis Firehose delivery stream"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

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
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

STREAM: Final = "stream"

_MAX_RECORD_BYTES: Final = 1000 << 10

SPEC: Final = Spec(
    Kind.OUTPUT,
    "aws_kinesis_firehose",
    "Sends messages to a delivery stream of AWS Firehose.",
    description=(
        "The messages of a batch are sent in requests of up to 500 records and 4 MiB; each may "
        "fail by itself. What the delivery stream does not take for now is sent again as "
        "`max_retries` and `backoff` say. Messages of more than 1,000 KiB are rejected. Firehose "
        "puts nothing between records: end messages with a line break where the destination needs "
        "one. A message may be sent again after a failure of the program."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(STREAM, "string", "The name of the delivery stream.", examples=("foo",)),
        max_in_flight_field(),
        BATCHING_FIELD,
        *SESSION_FIELDS,
        *retry_fields(),
    ),
    check=join_checks(session_problems, batching_problems),
    examples=(
        Example(
            "Lines of JSON",
            "output:\n"
            "  aws_kinesis_firehose:\n"
            "    stream: orders\n"
            "    region: eu-west-1\n"
            "  processors:\n"
            "    - mapping: 'root = this.format_json(no_indent: true) + \"\\n\"'\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


class _DeliveryService:
    """Sends records to a delivery stream."""

    name = "firehose"
    max_records = 500
    max_bytes = 4 << 20

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def make_record(self, batch: Batch, index: int, ex: Execution) -> OutgoingRecord:
        """Return a message as Firehose takes it."""
        data = batch[index].raw
        if len(data) > _MAX_RECORD_BYTES:
            raise RecordTooLargeError(
                f"the record has {len(data):,} bytes; Firehose takes up to 1,000 KiB"
            )
        return OutgoingRecord(self._stream, {"Data": data}, len(data))

    def put(self, client: Any, target: str, entries: Sequence[Any]) -> Mapping[int, RecordFailure]:
        """Send records to the delivery stream."""
        answer = client.put_record_batch(DeliveryStreamName=target, Records=list(entries))
        return placed_failures(answer.get("RequestResponses", ()))

    def check(self, client: Any) -> str:
        """Request the status of the delivery stream."""
        answer = client.describe_delivery_stream(DeliveryStreamName=self._stream)
        status = answer["DeliveryStreamDescription"]["DeliveryStreamStatus"]
        return f"the delivery stream is {status.lower()}"


def build(parsed: ParsedFields, context: BuildContext) -> RecordOutput:
    """Take the fields; nothing is connected yet."""
    return RecordOutput(_DeliveryService(parsed[STREAM]), parsed, context)
