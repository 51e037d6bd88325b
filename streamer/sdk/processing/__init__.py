"""Processors one after another, as Benthos runs them, one batch in hand; counted and timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from streamer.core.component_stats import FINE_SHIFT, MAX_FINE_STEPS, ComponentStats
from streamer.core.errors import StreamAbortedError
from streamer.core.execution import Execution
from streamer.core.limits import current_limits
from streamer.core.message import Batch, Message
from streamer.core.time_limit import run_within_time
from streamer.sdk.component_ref import ComponentRef, fail_batch

if TYPE_CHECKING:
    from streamer.sdk.processing.line_selection import LineSelector

UNINSTRUMENTED: Final = frozenset({"metric", "noop", "resource"})
"""Processors of which Benthos counts nothing: they do nothing, or another one does it."""
COMPUTE_PROCESSORS: Final = frozenset(
    (
        *("archive", "avro", "bounds_check", "compress", "decompress", "grok", "jmespath", "jq"),
        *("json_schema", "msgpack", "parquet_decode", "parquet_encode", "parse_log", "unarchive"),
        "xml",
    )
)
"""Processors that wait for nobody, so that time is work. Mappings keep the limit by themselves,
wherever they stand (`streamer.bloblang.compiler.program`).
"""


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
    except (MemoryError, StreamAbortedError):
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
    except (MemoryError, StreamAbortedError):
        raise
    except Exception:
        # Which message it was is not known: one by one, only that one is marked.
        return [result for message in messages for result in _process_one(processor, message, ex)]


def _process_one(processor: BulkProcessor, message: Message, ex: Execution) -> list[Message]:
    try:
        return processor.process_each([message], ex)
    except (MemoryError, StreamAbortedError):
        raise
    except Exception as error:
        return _mark_failed(processor, [message], error, ex)


class InstrumentedProcessor:
    """A processor, and what is counted of it: messages, batches, and the time that they take.

    A window has many small groups, and this runs for each: what it needs is at hand, and calls of
    functions are few.
    """

    def __init__(self, processor: Processor, origin: ComponentRef) -> None:
        """Take a processor, and where it stands."""
        self.processor = processor
        self._process: Callable[[Batch, Execution], list[Batch]] = processor.process
        self._origin = origin
        self._ex: Execution | None = None
        self._tally = ComponentStats()

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Process a batch."""
        if ex is not self._ex:
            self._begin_task(ex)
        tally, clock, received = self._tally, ex.elapsed, len(batch)
        began = clock()
        made = self._process(batch, ex)
        took = clock() - began
        tally.elapsed += took
        # Times that are the same to 64 ns come often; they are sorted into buckets at the end.
        took >>= FINE_SHIFT
        fine = tally.fine
        fine[took] = fine.get(took, 0) + 1
        tally.received += received
        tally.batches_received += 1
        for one in made:
            if one:
                tally.sent += len(one)
                tally.batches_sent += 1
        if len(fine) > MAX_FINE_STEPS:
            tally.flush_fine()
        return made

    def mark_failed(self, batch: Batch, error: Exception, ex: Execution) -> Batch:
        """Mark the messages of a batch on which the processor broke down."""
        if ex is not self._ex:
            self._begin_task(ex)
        tally = self._tally
        tally.received += len(batch)
        tally.batches_received += 1
        tally.sent += len(batch)
        tally.batches_sent += 1
        return self._origin.fail_batch(batch, error, ex)

    def _begin_task(self, ex: Execution) -> None:
        key = self._origin.key
        self._ex, self._tally = ex, ex.stats_of(key)
        # Who watches is asked once in a task, so that it costs nothing when nobody does.
        self._process = self.processor.process
        if ex.sampler is not None:
            self._process = ex.sampler.wrap(self._process, key)
        limit = current_limits().time
        if limit and self._origin.name in COMPUTE_PROCESSORS:
            process = self._process
            self._process = lambda batch, ex: run_within_time(
                lambda: process(batch, ex), limit * max(len(batch), 1)
            )
        if ex.calls is not None:
            self._process = ex.calls.wrap(self._process, self._origin)


class InstrumentedBulkProcessor(InstrumentedProcessor):
    """The same for one that takes many batches of one at once: they share their time equally."""

    def __init__(self, processor: Processor, each: BulkProcessor, origin: ComponentRef) -> None:
        """Take a processor, as both that it is, and where it stands."""
        super().__init__(processor, origin)
        self._each = each
        self._process_each: Callable[[Batch, Execution], Batch] = each.process_each

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Process messages that are batches by themselves."""
        if ex is not self._ex:
            self._begin_task(ex)
        tally, received = self._tally, len(messages)
        began = ex.elapsed()
        made = self._process_each(messages, ex)
        tally.add_latency(ex.elapsed() - began, received or 1)
        tally.received += received
        tally.batches_received += received
        tally.sent += len(made)
        tally.batches_sent += len(made)
        return made

    def _begin_task(self, ex: Execution) -> None:
        super()._begin_task(ex)
        self._process_each = self._each.process_each
        if ex.sampler is not None:
            self._process_each = ex.sampler.wrap_each(self._process_each, self._origin.key)
        limit = current_limits().time
        if limit and self._origin.name in COMPUTE_PROCESSORS:
            # The time of one is that of all: when it is over, they come again one by one.
            each = self._process_each
            self._process_each = lambda messages, ex: run_within_time(
                lambda: each(messages, ex), limit
            )
        if ex.calls is not None:
            self._process_each = self._one_by_one

    def make_line_selector(self, ex: Execution) -> LineSelector | None:
        """Return what does the same to lines; None where they must be processed as messages."""
        make = getattr(self._each, "make_line_selector", None)
        if make is None or not ex.column_mode or ex.sampler is not None or ex.calls is not None:
            return None
        selector: LineSelector | None = make(ex.column_mode)
        return selector

    def count_selected(self, received: int, sent: int, took: int, ex: Execution) -> None:
        """Count lines that a selector has taken instead of `process_each`.

        Args:
            received: how many came.
            sent: how many of them were kept.
            took: the time that it took, ns.
            ex: the run.
        """
        if ex is not self._ex:
            self._begin_task(ex)
        tally = self._tally
        tally.add_latency(took, received or 1)
        tally.received += received
        tally.batches_received += received
        tally.sent += sent
        tally.batches_sent += sent

    def _one_by_one(self, messages: list[Message], ex: Execution) -> list[Message]:
        return [
            made for message in messages for batch in self._process([message], ex) for made in batch
        ]


def instrument(processor: Processor, origin: ComponentRef) -> InstrumentedProcessor:
    """Return a processor that is counted and timed under the name of its place."""
    if isinstance(processor, BulkProcessor):
        return InstrumentedBulkProcessor(processor, processor, origin)
    return InstrumentedProcessor(processor, origin)
