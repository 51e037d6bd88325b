"""`aws_sqs`: "sends messages to an SQS queue"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.aws.attributes import (
    DEDUPLICATION_ID,
    FIFO_FIELDS,
    GROUP_ID,
    AttributeMaker,
    TextFields,
    message_text,
    optional_text,
)
from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    metadata_exclude_field,
    session_problems,
)
from streamer.connectors.aws.output_base import (
    OutgoingRecord,
    RecordFailure,
    RecordOutput,
    named_failures,
    retry_fields,
)
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

URL: Final = "url"
DELAY_SECONDS: Final = "delay_seconds"
MAX_RECORDS: Final = "max_records_per_request"

_MAX_BYTES: Final = 262_144
_MAX_ATTRIBUTES: Final = 10
_MAX_DELAY_S: Final = 900

SPEC: Final = Spec(
    Kind.OUTPUT,
    "aws_sqs",
    "Sends messages to a queue of AWS SQS.",
    description=(
        "The messages of a batch are sent in requests of up to ten messages and 256 KiB. A larger "
        "message is sent alone, and rejected if the queue refuses it. Metadata become attributes: "
        "the first ten by name; names that SQS refuses and empty values are left out.\n"
        "\n"
        "Each message of a request may fail by itself. What the queue does not take for now is "
        "sent again as `max_retries` and `backoff` say. What it refuses for its content is "
        "rejected alone: an empty payload, a payload that is not UTF-8, or control characters.\n"
        "\n"
        "A message may be sent again after a failure of the program: set "
        "`message_deduplication_id` and use a FIFO queue where this matters. The order of a group "
        "is kept with a `max_in_flight` of 1, as long as no message of a request fails alone."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(
            URL,
            "string",
            "The URL of the queue.",
            access=Access.REMOTE,
            interpolated=True,
            examples=("https://sqs.eu-west-1.amazonaws.com/123456789012/orders",),
        ),
        *FIFO_FIELDS,
        optional_text(DELAY_SECONDS, "Seconds before the message can be received, 0 to 900.", "10"),
        max_in_flight_field(),
        metadata_exclude_field("Which metadata are left out."),
        BATCHING_FIELD,
        Field(
            MAX_RECORDS,
            "int",
            "Maximum number of messages in one request, 1 to 10.",
            default=10,
            advanced=True,
            check=lambda number: None if 1 <= number <= 10 else f"is {number}; expected 1 to 10",
        ),
        *SESSION_FIELDS,
        *retry_fields(),
    ),
    check=join_checks(session_problems, batching_problems),
    examples=(
        Example(
            "A FIFO queue",
            "output:\n"
            "  aws_sqs:\n"
            "    url: https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo\n"
            "    message_group_id: ${! this.customer }\n"
            "    message_deduplication_id: ${! this.id }\n"
            "    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


class _QueueService:
    """Sends messages to queues."""

    name = "sqs"
    max_bytes = _MAX_BYTES

    def __init__(self, parsed: ParsedFields) -> None:
        self.max_records = parsed[MAX_RECORDS]
        self._is_fixed = "${!" not in parsed[URL]
        self._queue = parsed[URL]
        self._url = compile_interpolation(parsed[URL])
        self._attributes = AttributeMaker(parsed, _MAX_ATTRIBUTES)
        self._texts = TextFields(
            parsed,
            {
                GROUP_ID: "MessageGroupId",
                DEDUPLICATION_ID: "MessageDeduplicationId",
                DELAY_SECONDS: "DelaySeconds",
            },
        )

    def make_record(self, batch: Batch, index: int, ex: Execution) -> OutgoingRecord:
        """Return a message as SQS takes it."""
        message = batch[index]
        entry: dict[str, Any] = self._texts.make(batch, index, ex)
        if "DelaySeconds" in entry:
            entry["DelaySeconds"] = _parse_delay(entry["DelaySeconds"])
        entry["MessageBody"] = message_text(message.raw)
        size = self._attributes.attach(entry, message)
        return OutgoingRecord(interpolate(URL, self._url, batch, index, ex), entry, size)

    def put(self, client: Any, target: str, entries: Sequence[Any]) -> Mapping[int, RecordFailure]:
        """Send messages to a queue."""
        named = [{"Id": str(place), **entry} for place, entry in enumerate(entries)]
        return named_failures(client.send_message_batch(QueueUrl=target, Entries=named))

    def check(self, client: Any) -> str:
        """Request the attributes of the queue."""
        if not self._is_fixed:
            return ""
        client.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])
        return "the queue is there"


def _parse_delay(text: str) -> int:
    seconds = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= seconds <= _MAX_DELAY_S:
        raise MessageError(f"{DELAY_SECONDS} is {text!r}; expected a whole number from 0 to 900")
    return seconds


def build(parsed: ParsedFields, context: BuildContext) -> RecordOutput:
    """Compile the fields; nothing is connected yet."""
    return RecordOutput(_QueueService(parsed), parsed, context)
