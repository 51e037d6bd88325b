"""`nats_jetstream`: reads messages of a stream of NATS JetStream.

It "reads messages from NATS JetStream subjects". A message is acknowledged when it is on the disk;
one that comes again, since its acknowledgement was lost, is known by its number in the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

from streamer.connectors.nats.client_fields import (
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    PACKAGES,
    SUBJECT,
    client_problems,
    subject_field,
    tracing_field,
)
from streamer.connectors.nats.connection import Client, NatsError
from streamer.connectors.nats.messages import make_record
from streamer.connectors.nats.session import NatsInput
from streamer.connectors.spool.message_queue import MAX_RECORDS, MessageQueue
from streamer.connectors.spool.reconnecting_receiver import Session
from streamer.core.durations import SECOND
from streamer.sdk.component_ref import ComponentRef
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

QUEUE: Final = "queue"
DURABLE: Final = "durable"
STREAM: Final = "stream"
BIND: Final = "bind"
CREATE_STREAM: Final = "create_stream"
DELIVER: Final = "deliver"
ACK_WAIT: Final = "ack_wait"
MAX_ACK_PENDING: Final = "max_ack_pending"

_FETCH_S: Final = 0.5
_ACK_FLUSH_S: Final = 10.0


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    if parsed[BIND]:
        if not parsed[STREAM] or not (parsed[DURABLE] or parsed[QUEUE]):
            yield BIND, "needs the field stream, and durable or queue"
    elif not parsed[SUBJECT]:
        yield SUBJECT, "is missing; only bind goes without it"
    if parsed[CREATE_STREAM] and not (parsed[STREAM] and parsed[SUBJECT]):
        yield CREATE_STREAM, "needs the fields stream and subject"


SPEC: Final = Spec(
    Kind.INPUT,
    "nats_jetstream",
    "Reads messages of a stream of NATS JetStream.",
    description=(
        "A message is acknowledged when it is on the driver's disk, and one that comes again for "
        "want of an acknowledgement is left out: each is read once. With `durable`, the stream "
        "goes on after a restart where it was. Without it, it begins as `deliver` says at every "
        "start. The metadata are `nats_subject`, `nats_sequence_stream`, "
        "`nats_sequence_consumer`, `nats_num_delivered`, `nats_num_pending`, `nats_domain`, "
        "`nats_timestamp_unix_nano` and the headers."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            QUEUE,
            "string",
            "The queue group: each message goes to one of its members.",
            optional=True,
        ),
        subject_field("The subject; `*` and `>` may be used.", optional=True),
        Field(
            DURABLE,
            "string",
            "The name of the consumer, which the server remembers.",
            optional=True,
            access=Access.NONE,
        ),
        Field(
            STREAM,
            "string",
            "The stream; without it, it is found by the subject.",
            optional=True,
            access=Access.NONE,
        ),
        Field(
            BIND,
            "bool",
            "True to use a consumer that is there, of the name `durable`, in place of making one.",
            optional=True,
        ),
        Field(
            CREATE_STREAM,
            "bool",
            "True to create the stream with the subject where it is missing.",
            default=False,
            advanced=True,
        ),
        Field(
            DELIVER,
            "string",
            "Where a new consumer begins.",
            default="all",
            options=("all", "last", "last_per_subject", "new"),
        ),
        duration_field(
            ACK_WAIT,
            "Time after which the server sends a message again that was not acknowledged.",
            default="30s",
            advanced=True,
        ),
        Field(
            MAX_ACK_PENDING,
            "int",
            "Maximum number of messages that the server sends without an acknowledgement.",
            default=1024,
            advanced=True,
        ),
        *CONNECTION_FIELDS,
        tracing_field("extract_tracing_map"),
    ),
    check=_problems,
    begin={"subject": "orders.>"},
    examples=(
        Example(
            "A durable consumer",
            "input:\n"
            "  nats_jetstream:\n"
            "    urls: [nats://127.0.0.1:4222]\n"
            "    subject: orders.>\n"
            "    durable: streamer\n",
        ),
    ),
    categories=("Services",),
    delivery="exactly once onto the driver's disk, by the message's number in the stream",
    requires=PACKAGES,
)


class _ConsumerSession:
    """Subscribes, and stores what comes."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._parsed = parsed
        self._fetching: asyncio.Task[None] | None = None

    async def subscribe(self, client: Client, queue: MessageQueue, session: Session) -> None:
        """Have messages put into the queue.

        Raises:
            NatsError: there is no such stream or consumer.
        """
        parsed, context = self._parsed, client.jetstream()
        if parsed[CREATE_STREAM]:
            await self._create_stream(context)
        if parsed[BIND]:
            name = parsed[DURABLE] or parsed[QUEUE]
            info = await context.consumer_info(parsed[STREAM], name)
            if not info.config.deliver_subject:
                subscription = await context.pull_subscribe_bind(name, parsed[STREAM])
                self._fetching = asyncio.create_task(_fetch(subscription, queue))
                return
            await context.subscribe_bind(
                parsed[STREAM], info.config, name, cb=queue.put, manual_ack=True
            )
            return
        await context.subscribe(
            parsed[SUBJECT],
            queue=parsed[QUEUE] or None,
            cb=queue.put,
            durable=parsed[DURABLE] or None,
            stream=parsed[STREAM] or None,
            config=self._consumer_config(),
            manual_ack=True,
        )

    async def _create_stream(self, context: Any) -> None:
        from nats.js.errors import NotFoundError

        try:
            await context.stream_info(self._parsed[STREAM])
        except NotFoundError:
            await context.add_stream(name=self._parsed[STREAM], subjects=[self._parsed[SUBJECT]])

    def _consumer_config(self) -> Any:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        return ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            deliver_policy=DeliverPolicy(self._parsed[DELIVER]),
            ack_wait=(self._parsed[ACK_WAIT] or 0) / SECOND or None,
            max_ack_pending=self._parsed[MAX_ACK_PENDING],
        )

    async def store(self, client: Client, messages: Sequence[Any], session: Session) -> bool:
        """Write messages to the disk, and acknowledge them."""
        # What was written last, and may come again; all before it is acknowledged for sure.
        written = session.store.mark or {}
        known = {(stream, number) for stream, numbers in written.items() for number in numbers}
        records: list[Any] = []
        mark: dict[str, list[int]] = {}
        for message in messages:
            at = message.metadata
            number = at.sequence.stream
            mark.setdefault(at.stream, []).append(number)
            if at.num_delivered == 1 or (at.stream, number) not in known:
                records.append(_make_record(message, at))
        if records and not session.write(records, mark):
            return False
        for message in messages:
            await message.ack()
        await client.flush(_ACK_FLUSH_S)
        return True


async def _fetch(subscription: Any, queue: MessageQueue) -> None:
    """Request messages until the connection is lost."""
    import nats.errors

    try:
        while True:
            try:
                for message in await subscription.fetch(MAX_RECORDS, _FETCH_S):
                    await queue.put(message)
            except (TimeoutError, nats.errors.TimeoutError):
                continue
    except (nats.errors.Error, OSError, NatsError):
        queue.close()


def _make_record(message: Any, at: Any) -> Any:
    metadata = {
        "nats_subject": message.subject,
        "nats_sequence_stream": str(at.sequence.stream),
        "nats_sequence_consumer": str(at.sequence.consumer),
        "nats_num_delivered": str(at.num_delivered),
        "nats_num_pending": str(at.num_pending),
        "nats_domain": at.domain or "",
        "nats_timestamp_unix_nano": str(round(at.timestamp.timestamp() * SECOND)),
    }
    return make_record(message, metadata)


def build(parsed: ParsedFields, context: BuildContext) -> NatsInput:
    """Take the fields; it is connected once it is opened."""
    consumer = _ConsumerSession(parsed)
    labels = ComponentRef(context.component).fields
    return NatsInput(parsed, "nats_jetstream", labels, consumer.subscribe, consumer.store)
