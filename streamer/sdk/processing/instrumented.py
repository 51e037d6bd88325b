"""Processors that are counted and timed: what Benthos's own metrics say of each, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streamer.core.component_stats import FINE_SHIFT, MAX_FINE_STEPS, ComponentStats
from streamer.core.execution import Execution
from streamer.core.limits import current_limits
from streamer.core.message import Batch, Message
from streamer.core.time_limit import run_within_time
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing import BulkProcessor, Processor

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

    def _one_by_one(self, messages: list[Message], ex: Execution) -> list[Message]:
        return [
            made for message in messages for batch in self._process([message], ex) for made in batch
        ]


def instrument(processor: Processor, origin: ComponentRef) -> InstrumentedProcessor:
    """Return a processor that is counted and timed under the name of its place."""
    if isinstance(processor, BulkProcessor):
        return InstrumentedBulkProcessor(processor, processor, origin)
    return InstrumentedProcessor(processor, origin)
