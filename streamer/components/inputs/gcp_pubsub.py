"""`gcp_pubsub`: it "consumes messages from a GCP Cloud Pub/Sub subscription"."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from streamer.connectors.google.api import PACKAGES
from streamer.connectors.google.pubsub import MAX_MESSAGES, PUBSUB_FIELDS, PubsubClient
from streamer.connectors.http_client.errors import HttpTimeoutError
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

SUBSCRIPTION: Final = "subscription"
MAX_OUTSTANDING: Final = "max_outstanding_messages"
CREATE_SUBSCRIPTION: Final = "create_subscription"

_PULL_TIMEOUT: Final = 5 * SECOND
"""Pub/Sub keeps a request for longer when there is nothing; a stream must be able to stop."""
_EMPTY_PAUSE_S: Final = 0.2
_EXISTS: Final = 409

SPEC: Final = Spec(
    Kind.INPUT,
    "gcp_pubsub",
    "Consumes a subscription of Google Cloud Pub/Sub.",
    description=(
        "The driver pulls messages, and acknowledges them when they are on its disk. Pub/Sub "
        "delivers a message again whose acknowledgement it has not got in time. The metadata are "
        "the attributes, `gcp_pubsub_message_id`, `gcp_pubsub_publish_time_unix`, and where they "
        "are given `gcp_pubsub_ordering_key` and `gcp_pubsub_delivery_attempt`.\n"
        "\n"
        "It uses the JSON API, and is tested with a stand-in for it, not with Google's."
    ),
    fields=(
        *PUBSUB_FIELDS,
        Field(SUBSCRIPTION, "string", "The subscription.", access=Access.REMOTE),
        Field("sync", "bool", "Has no effect: messages are always pulled.", default=False),
        Field(
            MAX_OUTSTANDING,
            "int",
            "Maximum number of messages that wait for the disk; 1000 at most are pulled at once.",
            default=1_000,
            check=lambda number: None if number > 0 else f"is {number}; expected 1 or more",
        ),
        Field(
            "max_outstanding_bytes",
            "int",
            "Has no effect: Pub/Sub bounds what it gives at once.",
            default=1_000_000_000,
        ),
        Field(
            CREATE_SUBSCRIPTION,
            "object",
            "Creates the subscription where it is missing.",
            advanced=True,
            children=(
                Field("enabled", "bool", "True to create it.", default=False),
                Field("topic", "string", "The topic of the subscription.", default=""),
            ),
        ),
    ),
    check=lambda parsed: (
        [(f"{CREATE_SUBSCRIPTION}.topic", "is empty; expected the topic of the subscription")]
        if parsed[CREATE_SUBSCRIPTION]["enabled"] and not parsed[CREATE_SUBSCRIPTION]["topic"]
        else []
    ),
    examples=(
        Example(
            "A subscription",
            "input:\n  gcp_pubsub:\n    project: my-project\n    subscription: billing\n",
        ),
    ),
    categories=("Services", "GCP"),
    requires=PACKAGES,
)


@dataclass(frozen=True)
class PubsubInput:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        pubsub: the client.
        labels: of its log lines and counts.
    """

    parsed: ParsedFields
    pubsub: PubsubClient
    labels: dict[str, str]

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to receive; return the source of what the spool holds."""

        def session(one: Session) -> None:
            try:
                self._run(one)
            except StreamerError as e:
                raise ConnectionLostError(str(e)) from None

        return start_sessions(context, "gcp_pubsub", self.labels, session)

    def _run(self, session: Session) -> None:
        path = self.pubsub.path("subscriptions", self.parsed[SUBSCRIPTION])
        created = self.parsed[CREATE_SUBSCRIPTION]
        if created["enabled"]:
            topic = {"topic": self.pubsub.full_name("topics", created["topic"])}
            self.pubsub.query("PUT", path, topic, known=_EXISTS)
        self.pubsub.query("GET", path)
        session.set_connected()
        number = min(self.parsed[MAX_OUTSTANDING], MAX_MESSAGES)
        while not session.context.stopping:
            try:
                answer = self.pubsub.query("POST", f"{path}:pull", {"maxMessages": number})
            except HttpTimeoutError:
                continue
            received = answer.get("receivedMessages") or []
            if not received:
                session.context.wait(_EMPTY_PAUSE_S)
                continue
            records, ids = _read_messages(received)
            if not session.write(records):
                return
            self.pubsub.query("POST", f"{path}:acknowledge", {"ackIds": ids})

    def probe(self) -> str:
        """Check that the subscription is there, unless it is to be created."""
        if self.parsed[CREATE_SUBSCRIPTION]["enabled"]:
            self.pubsub.query(
                "GET", self.pubsub.path("topics", self.parsed[CREATE_SUBSCRIPTION]["topic"])
            )
            return "the topic is there"
        self.pubsub.query("GET", self.pubsub.path("subscriptions", self.parsed[SUBSCRIPTION]))
        return "the subscription is there"


def _read_messages(received: Any) -> tuple[list[Record], list[str]]:
    """Return what was received as records of the spool, and what acknowledges it.

    Raises:
        StreamerError: it is none of Pub/Sub's.
    """
    try:
        return [_make_record(one) for one in received], [str(one["ackId"]) for one in received]
    except (TypeError, KeyError, ValueError, AttributeError, binascii.Error):
        raise StreamerError(
            "the answer is none of Pub/Sub; expected messages with data and an id"
        ) from None


def _make_record(received: Any) -> Record:
    message = received["message"]
    metadata = {str(key): str(text) for key, text in (message.get("attributes") or {}).items()}
    metadata["gcp_pubsub_message_id"] = str(message["messageId"])
    published = message.get("publishTime")
    if published:
        when = datetime.fromisoformat(published.partition(".")[0].rstrip("Z") + "+00:00")
        metadata["gcp_pubsub_publish_time_unix"] = str(int(when.timestamp()))
    if message.get("orderingKey"):
        metadata["gcp_pubsub_ordering_key"] = str(message["orderingKey"])
    if received.get("deliveryAttempt"):
        metadata["gcp_pubsub_delivery_attempt"] = str(received["deliveryAttempt"])
    return pack_each([base64.b64decode(message.get("data") or "", validate=True)], metadata)


def build(parsed: ParsedFields, context: BuildContext) -> PubsubInput:
    """Take the fields; it is connected once it is opened."""
    pubsub = PubsubClient(parsed, context, _PULL_TIMEOUT)
    return PubsubInput(parsed, pubsub, ComponentRef(context.component).fields)
