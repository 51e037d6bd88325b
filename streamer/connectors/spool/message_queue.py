"""A queue of messages between a client with an event loop and the spool."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from streamer.connectors.spool.reconnecting_receiver import ConnectionLostError

_WAIT_S: Final = 0.5
"""Seconds after which a session looks whether the stream stops."""
MAX_RECORDS: Final = 1_000
"""Messages that are written to the disk at once, at most."""


class MessageQueue:
    """The messages that have come and are not on the disk yet."""

    def __init__(self, limit: int = 0) -> None:
        """Take the number of messages that may wait, more wait at the server; 0 for no limit."""
        self._queue: asyncio.Queue[Any] = asyncio.Queue(limit)
        self._is_closed = asyncio.Event()

    def put_now(self, message: Any) -> None:
        """Add a message, for which the sender leaves room."""
        self._queue.put_nowait(message)

    async def put(self, message: Any) -> None:
        """Add a message, as soon as there is room."""
        await self._queue.put(message)

    def close(self) -> None:
        """Note that no more messages come."""
        self._is_closed.set()

    async def take(self) -> list[Any]:
        """Return what waits, at least one message unless none comes for a while.

        Raises:
            ConnectionLostError: nothing waits, and nothing comes any more.
        """
        taken: list[Any] = []
        if self._queue.empty():
            if self._is_closed.is_set():
                raise ConnectionLostError("the server has closed the connection")
            try:
                taken.append(await asyncio.wait_for(self._queue.get(), _WAIT_S))
            except TimeoutError:
                return taken
        while len(taken) < MAX_RECORDS and not self._queue.empty():
            taken.append(self._queue.get_nowait())
        return taken
