"""`nats_request_reply`: sends each message as a request, and takes the reply in its place.

It "sends a message to a NATS subject and expects a reply, from a NATS subscriber acting as a
responder, back".
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.nats.client_fields import (
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    HEADER_FIELDS,
    PACKAGES,
    SUBJECT,
    client_problems,
    subject_field,
)
from streamer.connectors.nats.connection import NatsConnection, NatsError
from streamer.connectors.nats.messages import HeaderMaker, header_metadata
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.processing.per_message import PerMessageProcessor
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

INBOX_PREFIX: Final = "inbox_prefix"
TIMEOUT: Final = "timeout"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "nats_request_reply",
    "Sends each message as a request over NATS, and takes the reply in its place.",
    description=(
        "The reply has the metadata of the message, `nats_subject`, and the headers of the reply. "
        "Without a reply the message is marked as failed. In `parallel`, requests of a batch are "
        "sent at the same time."
    ),
    fields=(
        *CLIENT_FIELDS,
        subject_field("The subject.", interpolated=True),
        Field(
            INBOX_PREFIX,
            "string",
            "Begin of the subjects at which replies come.",
            optional=True,
            advanced=True,
            access=Access.NONE,
            examples=("_INBOX_joe",),
        ),
        *HEADER_FIELDS,
        duration_field(TIMEOUT, "Maximum time of a reply.", default="3s"),
        *CONNECTION_FIELDS,
    ),
    check=client_problems,
    examples=(
        Example(
            "Prices by a service",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        request_map: root = this.item\n"
            "        processors:\n"
            "          - nats_request_reply:\n"
            "              urls: [nats://127.0.0.1:4222]\n"
            "              subject: prices\n"
            "        result_map: root.price = content().number()\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


class _Requester:
    """Makes a request of a message."""

    def __init__(self, parsed: ParsedFields, connection: NatsConnection) -> None:
        self._subject = compile_interpolation(parsed[SUBJECT])
        self._headers = HeaderMaker(parsed)
        self._timeout_s = (parsed[TIMEOUT] or 0) / SECOND or 3.0
        self._connection = connection

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return the reply, with the metadata of the message."""
        batch = [message]
        subject = interpolate("subject", self._subject, batch, 0, ex)
        headers = self._headers.make(batch, 0, ex)
        try:
            reply = self._connection.run(
                lambda client: client.request(
                    subject, message.raw, timeout=self._timeout_s, headers=headers
                ),
                self._timeout_s + 1,
            )
        except NatsError as error:
            raise MessageError(str(error)) from None
        metadata = {"nats_subject": reply.subject, **header_metadata(reply)}
        return message.with_bytes(bytes(reply.data)).with_metadata({**message.meta, **metadata})


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Compile the fields; it is connected at the first message."""
    connection = context.worker_resource(
        "nats", lambda: NatsConnection(parsed, parsed[INBOX_PREFIX] or "")
    )
    return PerMessageProcessor(_Requester(parsed, connection), ComponentRef(context.component))
