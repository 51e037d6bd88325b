"""Run what a source gives through processors, whichever way it gives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamer.message import Batch, Execution, Message
from streamer.pipeline import Processor, run, run_each
from streamer.source.replayable import Chunk, Raws


def feed(processors: Sequence[Processor], chunk: Chunk, ex: Execution) -> Iterator[Batch]:
    """Return the batches that come out; each plain payload goes in as a batch of its own."""
    if isinstance(chunk, Raws):
        yield from run_each(processors, [Message(raw, chunk.meta) for raw in chunk.raws], ex)
    else:
        yield from run(processors, chunk, ex)
