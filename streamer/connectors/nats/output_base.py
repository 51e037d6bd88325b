"""Outputs of NATS: messages of a batch are on their way together, and each may fail by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from streamer.bloblang import compile_interpolation
from streamer.connectors.nats.client_fields import SUBJECT
from streamer.connectors.nats.connection import (
    Client,
    NatsConnection,
    NatsError,
    describe_error,
    shared_connection,
)
from streamer.connectors.nats.messages import HeaderMaker
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, NotConnectedError, Output, SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.spec import BuildContext, ParsedFields

SEND_TIMEOUT_S: Final = 30.0


def as_send_error(error: NatsError) -> SendError:
    """Return why a batch was not sent, from the error of the connection."""
    return (NotConnectedError if error.is_connection_lost else SendError)(str(error))


class OutgoingMessage(NamedTuple):
    """A message as it is published.

    Attributes:
        subject: where.
        payload: the payload.
        headers: its headers; None without any.
    """

    subject: str
    payload: bytes
    headers: dict[str, str] | None


Publish = Callable[[Client, OutgoingMessage], Awaitable[Any]]


class NatsOutput(Output):
    """Publishes messages."""

    def __init__(self, parsed: ParsedFields, context: BuildContext, publish: Publish) -> None:
        """Take the fields, the worker that has the connection, and what publishes a message."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self._parsed = parsed
        self._subject = compile_interpolation(parsed[SUBJECT])
        self._headers = HeaderMaker(parsed)
        self._connection = shared_connection(parsed, context)
        self._publish = publish

    def connect(self, ex: Execution) -> None:
        """Connect to a server."""
        try:
            self._connection.run(lambda client: client.flush())
        except NatsError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Publish the messages of a batch, and wait until the server has them."""
        failed: dict[int, str] = {}
        outgoing: dict[int, OutgoingMessage] = {}
        for index in range(len(batch)):
            try:
                outgoing[index] = self._make_message(batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        try:
            failed |= self._connection.run(
                lambda client: self._publish_all(client, outgoing), SEND_TIMEOUT_S
            )
        except NatsError as error:
            raise as_send_error(error) from None
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _make_message(self, batch: Batch, index: int, ex: Execution) -> OutgoingMessage:
        # As in Connect, the output sees one message at a time.
        one = batch[index : index + 1]
        return OutgoingMessage(
            interpolate("subject", self._subject, one, 0, ex),
            batch[index].raw,
            self._headers.make(one, 0, ex),
        )

    async def _publish_all(
        self, client: Client, outgoing: dict[int, OutgoingMessage]
    ) -> dict[int, str]:
        """Publish messages together; return why some have failed, by index."""
        results = await asyncio.gather(
            *(self._publish(client, message) for message in outgoing.values()),
            return_exceptions=True,
        )
        failed: dict[int, str] = {}
        for index, result in zip(outgoing, results, strict=True):
            if isinstance(result, BaseException):
                failed[index] = _failure_text(result)
        await client.flush(SEND_TIMEOUT_S)
        return failed

    def probe(self) -> str:
        """Check that a server answers."""
        return NatsConnection(self._parsed).probe()


def _failure_text(error: BaseException) -> str:
    """Return why a message was not published; a rejection where that is its own fault.

    Raises:
        BaseException: the connection is lost.
    """
    import nats.errors
    from nats.js.errors import APIError, Error, NoStreamResponseError

    if isinstance(error, nats.errors.BadSubjectError | nats.errors.BadHeaderError):
        return make_invalid_rejection(describe_error(error))
    if isinstance(error, nats.errors.MaxPayloadError):
        return Rejection(describe_error(error), Reason.REFUSED)
    if isinstance(error, NoStreamResponseError | APIError | Error | nats.errors.TimeoutError):
        return describe_error(error)
    raise error
