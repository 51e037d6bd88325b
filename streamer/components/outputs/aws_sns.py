"""`aws_sns`: "sends messages to an AWS SNS topic"."""

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
)
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

TOPIC_ARN: Final = "topic_arn"
SUBJECT: Final = "subject"
TIMEOUT: Final = "timeout"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "aws_sns",
    "Publishes messages to a topic of AWS SNS.",
    description=(
        "The messages of a batch are published in requests of up to ten messages and 256 KiB; "
        "each may fail by itself. What the topic does not take for now is published again for 30 "
        "seconds, then the message has failed. What it refuses for its content is rejected alone. "
        "Metadata become attributes; names that SNS refuses and empty values are left out.\n"
        "\n"
        "A message may be published again after a failure of the program: set "
        "`message_deduplication_id` and use a FIFO topic where this matters."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(
            TOPIC_ARN,
            "string",
            "The ARN of the topic.",
            access=Access.REMOTE,
            interpolated=True,
            examples=("arn:aws:sns:eu-west-1:123456789012:orders",),
        ),
        *FIFO_FIELDS,
        optional_text(SUBJECT, "The subject, for e-mails.", "News of ${! this.region }"),
        max_in_flight_field(),
        metadata_exclude_field("Which metadata are left out."),
        duration_field(TIMEOUT, "Maximum time of a request.", default="5s", advanced=True),
        *SESSION_FIELDS,
    ),
    check=session_problems,
    examples=(
        Example(
            "Publish orders",
            "output:\n"
            "  aws_sns:\n"
            "    topic_arn: arn:aws:sns:eu-west-1:123456789012:orders\n"
            "    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


class _TopicService:
    """Publishes messages to topics."""

    name = "sns"
    max_records = 10
    max_bytes = 262_144

    def __init__(self, parsed: ParsedFields) -> None:
        self._topic = parsed[TOPIC_ARN]
        self._topic_text = compile_interpolation(parsed[TOPIC_ARN])
        self._attributes = AttributeMaker(parsed)
        self._subject = compile_interpolation(parsed[SUBJECT]) if parsed[SUBJECT] else None
        names = {GROUP_ID: "MessageGroupId", DEDUPLICATION_ID: "MessageDeduplicationId"}
        self._texts = TextFields(parsed, names)

    def make_record(self, batch: Batch, index: int, ex: Execution) -> OutgoingRecord:
        """Return a message as SNS takes it."""
        # As in Connect, the output sees one message at a time.
        one, message = batch[index : index + 1], batch[index]
        entry = self._texts.make(one, 0, ex)
        entry["Message"] = message_text(message.raw)
        if self._subject is not None and (
            subject := interpolate(SUBJECT, self._subject, one, 0, ex)
        ):
            entry["Subject"] = subject
        size = self._attributes.attach(entry, message)
        return OutgoingRecord(interpolate(TOPIC_ARN, self._topic_text, one, 0, ex), entry, size)

    def put(self, client: Any, target: str, entries: Sequence[Any]) -> Mapping[int, RecordFailure]:
        """Publish messages to a topic."""
        named = [{"Id": str(place), **entry} for place, entry in enumerate(entries)]
        return named_failures(
            client.publish_batch(TopicArn=target, PublishBatchRequestEntries=named)
        )

    def check(self, client: Any) -> str:
        """Request the attributes of the topic."""
        if "${!" in self._topic:
            return ""
        client.get_topic_attributes(TopicArn=self._topic)
        return "the topic is there"


def build(parsed: ParsedFields, context: BuildContext) -> RecordOutput:
    """Compile the fields; nothing is connected yet."""
    timeout_s = (parsed[TIMEOUT] or 0) / SECOND or 5.0
    return RecordOutput(_TopicService(parsed), parsed, context, timeout_s)
