"""Run what a source gives through processors, whichever way it gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from streamer.documents import write_ahead
from streamer.failure import Origin
from streamer.message import Batch, Execution, Message
from streamer.pipeline import Processor, run, run_each
from streamer.source.replayable import Chunk, Raws
from streamer.spec import ParsedComponent

# So few that their documents are still in the processor's cache when they are written out again:
# a quarter less time than with thousands. Enough to search them together (documents.py).
_PIECE: Final = 64


def feed(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, *, written: bool = False
) -> Iterator[Batch]:
    """Return the batches that come out; each plain payload goes in as a batch of its own.

    Args:
        processors: what they go through.
        chunk: what goes in.
        ex: the run.
        written: whether the payloads are about to be used as bytes: then they are written together.
    """
    if ex.crashes is not None:
        yield from _past_crashes(processors, chunk, ex, written)
        return
    yield from _fed(processors, chunk, ex, written)


def _past_crashes(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, written: bool
) -> Iterator[Batch]:
    """Do what `feed` does where a worker has died."""
    if isinstance(chunk, Raws):
        raws, meta = chunk.raws, chunk.meta
        batches = [[Message(raw, meta)] for raw in raws]

        def part(begin: int, end: int) -> Chunk:
            return Raws(raws[begin:end], meta)
    else:
        batches = whole = chunk

        def part(begin: int, end: int) -> Chunk:
            return whole[begin:end]

    yield from ex.crashes.passed(
        processors,
        batches,
        ex,
        "",
        lambda begin, end: _fed(processors, part(begin, end), ex, written),
    )


def _fed(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, written: bool
) -> Iterator[Batch]:
    if not isinstance(chunk, Raws) and any(len(batch) != 1 for batch in chunk):
        yield from run(processors, chunk, ex)
        if ex.reading is not None:
            ex.reading.add(size(chunk))
        return
    for start in range(0, len(chunk.raws if isinstance(chunk, Raws) else chunk), _PIECE):
        messages = _messages(chunk, start)
        count = len(messages)
        batches = run_each(processors, messages, ex)
        if written:
            write_ahead([message for batch in batches for message in batch])
        yield from batches
        if ex.reading is not None:
            ex.reading.add(count)


def seen(
    chunks: Iterable[Chunk],
    component: ParsedComponent,
    ex: Execution,
    inner: Sequence[ParsedComponent] = (),
) -> Iterator[Chunk]:
    """Return what an input gives, and take samples of it where somebody watches.

    Args:
        chunks: what it gives.
        component: the input.
        ex: the run.
        inner: the inputs inside of it that these have come through, each of which counts them.
    """
    sampler = ex.sampler
    key = Origin(component).key
    fields = [Origin(one).fields for one in inner]
    for chunk in chunks:
        if sampler is not None:
            some = [[one] for one in _messages(chunk, 0)] if isinstance(chunk, Raws) else chunk
            for batch in some:
                sampler.note(batch, key, "after")
        for labels in fields:
            ex.count("input_received", size(chunk), **labels)
        yield chunk


def size(chunk: Chunk) -> int:
    """Return how many messages a chunk has."""
    return len(chunk.raws) if isinstance(chunk, Raws) else sum(map(len, chunk))


def _messages(chunk: Chunk, start: int) -> list[Message]:
    """Return a piece of the messages, each of which is a batch by itself."""
    if isinstance(chunk, Raws):
        return [Message(raw, chunk.meta) for raw in chunk.raws[start : start + _PIECE]]
    return [message for [message] in chunk[start : start + _PIECE]]
