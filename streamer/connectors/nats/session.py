"""Sessions of inputs: what comes is on the disk before it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streamer.connectors.nats.connection import (
    Client,
    NatsConnection,
    NatsError,
    connect,
    nats_errors,
)
from streamer.connectors.spool.message_queue import MAX_RECORDS, MessageQueue
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields

Subscribe = Callable[[Client, MessageQueue, Session], Awaitable[None]]
"""Has messages put into the queue."""
Store = Callable[[Client, Sequence[Any], Session], Awaitable[bool]]
"""Writes messages to the disk, and acknowledges them; False when the stream stops before."""


@dataclass(frozen=True)
class NatsInput:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        name: its name.
        labels: of its log lines and counts.
        subscribe: begins to receive.
        store: takes what was received.
        limit: messages that may wait for the disk.
    """

    parsed: ParsedFields
    name: str
    labels: dict[str, str]
    subscribe: Subscribe
    store: Store
    limit: int = MAX_RECORDS

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to receive; return the source of what the spool holds."""

        def session(one: Session) -> None:
            try:
                with nats_errors():
                    asyncio.run(self._run(one))
            except NatsError as e:
                raise ConnectionLostError(str(e)) from None

        return start_sessions(context, self.name, self.labels, session)

    async def _run(self, session: Session) -> None:
        queue = MessageQueue(self.limit)
        client = await connect(self.parsed, queue.close)
        try:
            await self.subscribe(client, queue, session)
            await client.flush()
            session.set_connected()
            while not session.context.stopping:
                messages = await queue.take()
                if messages and not await self.store(client, messages, session):
                    return
        finally:
            await client.close()

    def probe(self) -> str:
        """Check that a server answers."""
        return NatsConnection(self.parsed).probe()
