"""The spool of an input as the public interface has it: whole messages, with marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.connectors.spool.blocks import pack_batch
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter
from streamer.connectors.spool.store import SpoolStore
from streamer.core.message import Message
from streamer.sdk.input.input_context import InputContext


class SpooledMessages:
    """Keeps messages of an input; see `streamer.sdk.input.input_context.MessageSpool`."""

    def __init__(self, context: InputContext) -> None:
        """Open the store of an input."""
        self._store = SpoolStore.for_input(context)
        self._writer = SpoolWriter(context, self._store)
        self.source = SpoolSource.for_input(context)

    @property
    def mark(self) -> Any:
        """The newest mark."""
        return self._store.mark

    @property
    def was_ended(self) -> bool:
        """Whether an earlier start has closed it."""
        return self._store.was_ended

    def write(self, messages: Sequence[Message], mark: Any, as_batch: bool) -> None:
        """Return when messages are safe.

        Raises:
            StreamStoppedError: the stream has stopped first.
        """
        batches = [list(messages)] if as_batch else [[message] for message in messages]
        self._writer.write([pack_batch(batch) for batch in batches], mark)

    def close(self) -> None:
        """End the store."""
        self._store.close()
