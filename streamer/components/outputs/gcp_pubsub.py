"""`gcp_pubsub`: it "sends messages to a GCP Cloud Pub/Sub topic"."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.bloblang.golib.text import to_text
from streamer.connectors.google.api import PACKAGES
from streamer.connectors.google.pubsub import (
    MAX_MESSAGES,
    PUBSUB_FIELDS,
    PubsubClient,
)
from streamer.connectors.http_client.divided_send import raise_failures, send_divided
from streamer.connectors.http_client.errors import HttpError
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.metadata_filter import METADATA_EXCLUDE_FIELD, ExcludedMetadata
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, max_in_flight_field
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

TOPIC: Final = "topic"
ORDERING_KEY: Final = "ordering_key"
COUNT_THRESHOLD: Final = "count_threshold"
BYTE_THRESHOLD: Final = "byte_threshold"
PUBLISH_TIMEOUT: Final = "publish_timeout"

_MAX_REQUEST_BYTES: Final = 9_000_000
"""Pub/Sub takes ten megabytes, with what frames the messages."""
_NOT_FOUND: Final = 404
_REQUEST_REFUSED: Final = (400, 413)


def _inert(name: str, kind: str, default: Any, **more: Any) -> Field:
    return Field(name, kind, "Has no effect.", default=default, advanced=True, **more)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "gcp_pubsub",
    "Publishes messages in a topic of Google Cloud Pub/Sub.",
    description=(
        "A batch is one request for each topic, or several where it is large. A message counts as "
        "sent when Pub/Sub has given it an id. What Pub/Sub refuses for one message is sent again "
        "in halves until that message is known, and it is rejected alone. Metadata become "
        "attributes, as text. After a failure a message may be published twice.\n"
        "\n"
        "It uses the JSON API, and is tested with a stand-in for it, not with Google's."
    ),
    fields=(
        *PUBSUB_FIELDS,
        Field(TOPIC, "string", "The topic, which must be there.", interpolated=True),
        Field(
            ORDERING_KEY,
            "string",
            "Messages with the same key keep their order, with a `max_in_flight` of 1.",
            default="",
            interpolated=True,
            advanced=True,
        ),
        max_in_flight_field(),
        Field(
            COUNT_THRESHOLD,
            "int",
            "Maximum number of messages of a request, 1 to 1000.",
            default=100,
            advanced=True,
            check=lambda number: (
                None if 1 <= number <= MAX_MESSAGES else f"is {number}; expected 1 to 1000"
            ),
        ),
        duration_field(
            "delay_threshold",
            "Has no effect: messages are not held back.",
            default="10ms",
            advanced=True,
        ),
        Field(
            BYTE_THRESHOLD,
            "int",
            "Maximum size of a request, in bytes; a larger message is a request by itself.",
            default=1_000_000,
            advanced=True,
            check=lambda number: None if number > 0 else f"is {number}; expected 1 or more",
        ),
        duration_field(
            PUBLISH_TIMEOUT,
            "Maximum duration of a request.",
            default="1m0s",
            advanced=True,
            check=lambda ns: None if ns > 0 else "must be longer than 0s",
        ),
        Field(
            "validate_topic",
            "bool",
            "Has no effect: `streamer dry-run` looks for the topic, and a stream waits for it.",
            default=True,
            advanced=True,
        ),
        METADATA_EXCLUDE_FIELD,
        Field(
            "flow_control",
            "object",
            "Has no effect: `max_in_flight` bounds what is on its way.",
            advanced=True,
            children=(
                _inert("max_outstanding_bytes", "int", -1),
                _inert("max_outstanding_messages", "int", 1000),
                _inert(
                    "limit_exceeded_behavior",
                    "string",
                    "block",
                    options=("ignore", "block", "signal_error"),
                ),
            ),
        ),
        BATCHING_FIELD,
    ),
    check=batching_problems,
    examples=(
        Example(
            "One topic, in order by user",
            "output:\n"
            "  gcp_pubsub:\n"
            "    project: my-project\n"
            "    topic: orders\n"
            "    ordering_key: ${! this.user }\n"
            "    max_in_flight: 1\n",
        ),
    ),
    categories=("Services", "GCP"),
    requires=PACKAGES,
)


@dataclass(frozen=True, slots=True)
class _Outgoing:
    index: int
    lines: bytes


class PubsubOutput(Output):
    """Publishes messages."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._topic = compile_interpolation(parsed[TOPIC])
        self._key = compile_interpolation(parsed[ORDERING_KEY])
        self._metadata = ExcludedMetadata(parsed)
        self._count = parsed[COUNT_THRESHOLD]
        self._bytes = min(parsed[BYTE_THRESHOLD], _MAX_REQUEST_BYTES)
        self._pubsub = PubsubClient(parsed, context, parsed[PUBLISH_TIMEOUT])

    def send(self, batch: Batch, ex: Execution) -> None:
        """Publish the messages of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        by_topic: dict[str, list[_Outgoing]] = {}
        for index in range(len(batch)):
            try:
                topic, outgoing = self._make_message(batch, index, ex)
                by_topic.setdefault(topic, []).append(outgoing)
            except (MessageError, ValueError) as error:
                failed[index] = make_invalid_rejection(str(error))
        outage: str | None = None
        for topic, messages in by_topic.items():

            def publish(part: Sequence[_Outgoing], topic: str = topic) -> dict[int, str] | None:
                return self._publish(topic, part, ex)

            refused, ending = send_divided(messages, self._bytes, publish, count=self._count)
            failed |= refused
            outage = outage or ending
        raise_failures(failed, outage, len(batch))

    def _make_message(self, batch: Batch, index: int, ex: Execution) -> tuple[str, _Outgoing]:
        topic = interpolate(TOPIC, self._topic, batch, index, ex)
        if not topic:
            raise MessageError("the name of the topic is empty")
        key = interpolate(ORDERING_KEY, self._key, batch, index, ex)
        meta = self._metadata.select(batch[index].meta)
        document: dict[str, Any] = {
            "data": base64.b64encode(batch[index].raw).decode(),
            "attributes": {name: to_text(value) for name, value in meta},
        }
        if key:
            document["orderingKey"] = key
        return topic, _Outgoing(index, dump_json(document))

    def _publish(
        self, topic: str, messages: Sequence[_Outgoing], ex: Execution
    ) -> dict[int, str] | None:
        body = b'{"messages":[' + b",".join(one.lines for one in messages) + b"]}"
        path = f"{self._pubsub.path('topics', topic)}:publish"
        answer = self._pubsub.client.request(self._pubsub.make_request("POST", path, body), ex)
        if answer.status == 200:
            if len(self._pubsub.read_document(answer).get("messageIds") or ()) != len(messages):
                raise HttpError("Pub/Sub does not answer with an id for each message")
            return {}
        text = self._pubsub.describe_answer(answer)
        if answer.status == _NOT_FOUND and self._topic.static is None:
            return {one.index: Rejection(text, Reason.REFUSED) for one in messages}
        if answer.status not in _REQUEST_REFUSED:
            raise HttpError(text, answer.status)
        if len(messages) > 1:
            return None
        reason = Reason.TOO_LARGE if answer.status == 413 else Reason.REFUSED
        return {messages[0].index: Rejection(text, reason)}

    def probe(self) -> str:
        """Check that the topic is there, or that there is a token where messages name it."""
        if self._topic.static is None:
            self._pubsub.make_request("GET", "")
            return "there are credentials"
        self._pubsub.query("GET", self._pubsub.path("topics", self._topic.static))
        return "the topic is there"


def build(parsed: ParsedFields, context: BuildContext) -> PubsubOutput:
    """Compile the fields; nothing is connected yet."""
    return PubsubOutput(parsed, context)
