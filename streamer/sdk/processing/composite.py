"""Processors that run other processors on each message, and make one batch of what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamer.core.message import Batch, Execution, Message
from streamer.sdk.processing import BulkProcessor, Processor

RunMessages = Callable[[list[Message], Execution], list[Message]]
"""Runs processors on messages, each a batch by itself; returns what comes out, in order."""


class CompositeProcessor:
    """Runs processors on the messages of a batch."""

    def __init__(self, run_messages: RunMessages) -> None:
        """Take the function that runs them."""
        self._run_messages = run_messages

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return all that comes out as one batch, in order."""
        made = self._run_messages(batch, ex)
        return [made] if made else []


class BulkCompositeProcessor(CompositeProcessor):
    """The same, when each of the processors makes at most one message of one."""

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Process messages that are batches by themselves."""
        return self._run_messages(messages, ex)


def make_composite(run_messages: RunMessages, children: Iterable[Processor]) -> CompositeProcessor:
    """Return a processor that runs `children` by `run_messages`; a bulk one when all are."""
    is_bulk = all(isinstance(child, BulkProcessor) for child in children)
    return (BulkCompositeProcessor if is_bulk else CompositeProcessor)(run_messages)
