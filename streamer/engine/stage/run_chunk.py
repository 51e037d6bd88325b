"""Run what a source gives through processors, whichever way it gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.json.bulk import serialise_batch
from streamer.core.message import Batch, Message
from streamer.engine.report.component_errors import attribute_iteration_errors
from streamer.engine.report.result_frame import TaskReport
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.sdk.processing import Processor, run, run_each
from streamer.sdk.spec import ParsedComponent

# So few that their documents are still in the processor's cache when they are written out again:
# a quarter less time than with thousands. Enough to search them together (documents.py).
_MESSAGES_PER_RUN: Final = 64


def run_chunk(
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
        yield from _run_past_crashes(processors, chunk, ex, written)
        return
    yield from _run_messages(processors, chunk, ex, written)


def _run_past_crashes(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, written: bool
) -> Iterator[Batch]:
    """Do what `run_chunk` does where a worker has died."""
    if isinstance(chunk, RawMessages):
        raws, meta = chunk.raws, chunk.meta
        batches = [[Message(raw, meta)] for raw in raws]

        def part(begin: int, end: int) -> Chunk:
            return RawMessages(raws[begin:end], meta)
    else:
        batches = whole = chunk

        def part(begin: int, end: int) -> Chunk:
            return whole[begin:end]

    yield from ex.crashes.run_batches(
        processors,
        batches,
        ex,
        "",
        lambda begin, end: _run_messages(processors, part(begin, end), ex, written),
    )


def _run_messages(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, written: bool
) -> Iterator[Batch]:
    if not isinstance(chunk, RawMessages) and any(len(batch) != 1 for batch in chunk):
        yield from run(processors, chunk, ex)
        if ex.read_counter is not None:
            ex.read_counter.add(count_messages(chunk))
        return
    for start in range(
        0, len(chunk.raws if isinstance(chunk, RawMessages) else chunk), _MESSAGES_PER_RUN
    ):
        messages = _make_messages(chunk, start)
        count = len(messages)
        batches = run_each(processors, messages, ex)
        if written:
            serialise_batch([message for batch in batches for message in batch])
        yield from batches
        if ex.read_counter is not None:
            ex.read_counter.add(count)


def observe_input(
    chunks: Iterable[Chunk],
    component: ParsedComponent,
    task: TaskReport,
    inner: Iterable[Mapping[str, str]] = (),
) -> Iterator[Chunk]:
    """Return what an input gives; an exception while it is read is the input's error.

    Args:
        chunks: what it gives.
        component: the input.
        task: its trace gets what is read, and its run the samples where somebody watches.
        inner: labels and paths of the inputs inside of it that they come through, which count them.
    """
    ex = task.execution
    observed = _sample_and_count(chunks, component, ex, inner)
    observed = attribute_iteration_errors(observed, ComponentRef(component).fields)
    if task.tracing is not None:
        observed = task.tracing.follow(observed)
    return observed if ex.crashes is None else ex.crashes.raise_at_end(observed)


def _sample_and_count(
    chunks: Iterable[Chunk],
    component: ParsedComponent,
    ex: Execution,
    inner: Iterable[Mapping[str, str]],
) -> Iterator[Chunk]:
    sampler = ex.sampler
    key = ComponentRef(component).key
    for chunk in chunks:
        if sampler is not None:
            some = (
                [[one] for one in _make_messages(chunk, 0)]
                if isinstance(chunk, RawMessages)
                else chunk
            )
            for batch in some:
                sampler.sample(batch, key, "after")
        for labels in inner:
            ex.count("input_received", count_messages(chunk), **labels)
        yield chunk


def count_messages(chunk: Chunk) -> int:
    """Return how many messages a chunk has."""
    return len(chunk.raws) if isinstance(chunk, RawMessages) else sum(map(len, chunk))


def _make_messages(chunk: Chunk, start: int) -> list[Message]:
    """Return a piece of the messages, each of which is a batch by itself."""
    if isinstance(chunk, RawMessages):
        return [Message(raw, chunk.meta) for raw in chunk.raws[start : start + _MESSAGES_PER_RUN]]
    return [message for [message] in chunk[start : start + _MESSAGES_PER_RUN]]
