"""Base of processors that run others, and give what comes out of a batch as one batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import BulkProcessor, Processor


class ProcessorComposition(ABC):
    """A processor that runs others."""

    @abstractmethod
    def run_singly(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Run the others on messages, each a batch by itself; return all that comes out."""

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return all that comes out as one batch, in order."""
        made = self.run_singly(batch, ex)
        return [made] if made else []


class BulkComposition:
    """A composition whose children all make at most one message of one; a `BulkProcessor`."""

    def __init__(self, composition: ProcessorComposition) -> None:
        self._composition = composition

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Process one batch."""
        return self._composition.process(batch, ex)

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Process messages that are batches by themselves."""
        return self._composition.run_singly(messages, ex)


def compose(composition: ProcessorComposition, children: Iterable[Processor]) -> Processor:
    """Return a composition of these children, as a `BulkProcessor` where all of them are."""
    is_bulk = all(isinstance(child, BulkProcessor) for child in children)
    return BulkComposition(composition) if is_bulk else composition
