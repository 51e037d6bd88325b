"""The way of batches through a list of processors, as Benthos runs it, one batch in hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import fail_batch


class Processor(Protocol):
    """A processor: one batch in, any number of batches out.

    >>> class Upper:
    ...     def process(self, batch: Batch, ex: Execution) -> list[Batch]:
    ...         return [[message.with_bytes(message.raw.upper()) for message in batch]]
    >>> [batch] = run([Upper()], [[Message(b"a"), Message(b"b")]], Execution(lambda: 0))
    >>> [message.raw for message in batch]
    [b'A', b'B']
    """

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Process a batch; it may be returned itself. No batch out means all was filtered."""


@runtime_checkable
class BulkProcessor(Protocol):
    """A processor that can also take many batches of one at once, which saves time on each."""

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Process each message as a batch by itself; it yields one such batch, or none."""


@runtime_checkable
class ErrorMarkingProcessor(Protocol):
    """A processor that knows where it stands, and so marks what it breaks down on itself."""

    def mark_failed(self, batch: Batch, error: Exception, ex: Execution) -> Batch:
        """Return the batch with every message marked as failed."""


def run(
    processors: Sequence[Processor], batches: Iterable[Batch], ex: Execution
) -> Iterator[Batch]:
    """Run batches through processors.

    For each batch that comes in, every processor works on all that the one before it made, before
    the next one begins (Benthos's order). Batches come out one by one, and what has come out is
    no longer held, so memory is that of one incoming batch and its results.

    A message that has failed goes on through the processors like any other, unless the run is
    strict: then a batch whose first message has failed skips the rest, as in Benthos.

    Raises:
        MemoryError: as it comes; any other error of a processor marks the batch's messages.
    """
    for batch in batches:
        current = [batch] if batch else []
        del batch
        for processor in processors:
            current = run_processor(processor, current, ex, strict=ex.strict)
        current.reverse()
        while current:
            yield current.pop()


def run_all(processors: Sequence[Processor], batches: list[Batch], ex: Execution) -> list[Batch]:
    """Run several batches through processors at once: each works on all, then the next begins.

    The list that is passed in is emptied. Without a processor it is returned itself.
    """
    for processor in processors:
        batches = run_processor(processor, batches, ex, strict=ex.strict)
    return batches


def run_singly(
    processors: Sequence[Processor], messages: Iterable[Message], ex: Execution
) -> list[Batch]:
    """Run messages, each a batch by itself, until one fails: a failed one skips what is left."""
    batches = [[message] for message in messages]
    for processor in processors:
        batches = run_processor(processor, batches, ex, strict=True)
    return batches


def run_each(
    processors: Sequence[Processor], messages: list[Message], ex: Execution
) -> list[Batch]:
    """Run messages, each a batch by itself, through processors: `run`, but faster.

    Processors that are an `BulkProcessor` take all messages at once, as long as every processor
    before them did, or every one behind them does. Nobody can tell but by the order of log lines
    and of `count()`. The others, which may ask and change what is outside of the stream, see one
    message pass all of them before the next one comes.
    """
    rest = list(processors)
    while rest and isinstance(rest[0], BulkProcessor):
        if ex.strict and any(message.error is not None for message in messages):
            break
        messages = _process_each(rest[0], messages, ex)
        rest.pop(0)
    singles = [[message] for message in messages]
    if not rest:
        return singles
    tail: list[Processor] = []
    while isinstance(rest[-1], BulkProcessor) and not ex.strict:
        tail.insert(0, rest.pop())
    batches = list(run(rest, singles, ex))
    if tail and all(len(batch) == 1 for batch in batches):
        return run_each(tail, [batch[0] for batch in batches], ex)
    return list(run(tail, batches, ex)) if tail else batches


def run_processor(
    processor: Processor, batches: list[Batch], ex: Execution, *, strict: bool = False
) -> list[Batch]:
    """Run batches through one processor; the list that is passed in is emptied.

    Empty batches vanish. With `strict` (as in Benthos's `try`), a batch whose first message has
    failed is left as it is. A batch on which the processor breaks down comes out marked as failed.
    """
    result: list[Batch] = []
    batches.reverse()
    while batches:
        # Popping frees each batch once it is done: a window's groups need not all stay.
        batch = batches.pop()
        if strict and batch[0].error is not None:
            result.append(batch)
            continue
        result.extend(made for made in _process_guarded(processor, batch, ex) if made)
    return result


def _process_guarded(processor: Processor, batch: Batch, ex: Execution) -> list[Batch]:
    try:
        return processor.process(batch, ex)
    except MemoryError:
        raise
    except Exception as error:
        return [_mark_failed(processor, batch, error, ex)]


def _mark_failed(processor: object, batch: Batch, error: Exception, ex: Execution) -> Batch:
    if isinstance(processor, ErrorMarkingProcessor):
        return processor.mark_failed(batch, error, ex)
    return fail_batch(batch, error, ex)


def _process_each(
    processor: BulkProcessor, messages: list[Message], ex: Execution
) -> list[Message]:
    try:
        return processor.process_each(messages, ex)
    except MemoryError:
        raise
    except Exception:
        # Which message it was is not known: one by one, only that one is marked.
        return [result for message in messages for result in _process_one(processor, message, ex)]


def _process_one(processor: BulkProcessor, message: Message, ex: Execution) -> list[Message]:
    try:
        return processor.process_each([message], ex)
    except MemoryError:
        raise
    except Exception as error:
        return _mark_failed(processor, [message], error, ex)
