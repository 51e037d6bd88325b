"""Processors that are counted and timed: what Benthos's own metrics say of each, batch by batch."""

from __future__ import annotations

from typing import Final

from streamer.failure import Origin
from streamer.message import Batch, Execution, Message
from streamer.pipeline import EachProcessor, Processor

UNOBSERVED: Final = frozenset({"noop", "resource"})
"""Processors of which Benthos counts nothing: they do nothing, or another one does it."""


class Observed:
    """A processor, and what is counted of it: messages, batches, and the time that they take."""

    def __init__(self, processor: Processor, origin: Origin) -> None:
        """Take a processor, and where it stands."""
        self.processor = processor
        self._origin = origin
        self._key = origin.key

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Process a batch."""
        received = len(batch)
        began = ex.elapsed()
        made = self.processor.process(batch, ex)
        tally = ex.tally(self._key)
        tally.timed(ex.elapsed() - began, 1)
        tally.received += received
        tally.batches_received += 1
        for one in made:
            if one:
                tally.sent += len(one)
                tally.batches_sent += 1
        return made

    def failed(self, batch: Batch, error: Exception, ex: Execution) -> Batch:
        """Mark the messages of a batch on which the processor broke down."""
        tally = ex.tally(self._key)
        tally.received += len(batch)
        tally.batches_received += 1
        tally.sent += len(batch)
        tally.batches_sent += 1
        return self._origin.fail_batch(batch, error, ex)


class ObservedEach(Observed):
    """The same for one that takes many batches of one at once: they share their time equally."""

    def __init__(self, processor: Processor, each: EachProcessor, origin: Origin) -> None:
        """Take a processor, as both that it is, and where it stands."""
        super().__init__(processor, origin)
        self._each = each

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Process messages that are batches by themselves."""
        received = len(messages)
        began = ex.elapsed()
        made = self._each.process_each(messages, ex)
        tally = ex.tally(self._key)
        tally.timed(ex.elapsed() - began, received or 1)
        tally.received += received
        tally.batches_received += received
        tally.sent += len(made)
        tally.batches_sent += len(made)
        return made


def observed(processor: Processor, origin: Origin) -> Observed:
    """Return a processor that is counted and timed under the name of its place."""
    if isinstance(processor, EachProcessor):
        return ObservedEach(processor, processor, origin)
    return Observed(processor, origin)
