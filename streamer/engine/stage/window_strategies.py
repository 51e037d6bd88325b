"""Strategies by which the emissions of windows go through processors to the outputs.

`WindowPipeline` chooses one for each `Route`. Small batches go together as far as nobody can tell:
one by one, they would cost more for what is done around each than for what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from typing import Final, Protocol, TypeVar

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.portions import cut_portions
from streamer.engine.report.emission_stats import EmissionStats
from streamer.engine.report.result_frame import Payload
from streamer.engine.stage.aggregated_pipeline import AggregatedPipeline
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.plan import Plan
from streamer.plan.window_plan import MAPPING_PROCESSORS
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing import Processor, run, run_each
from streamer.window import Emission
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract import EmptyWindow
from streamer.window.fire.emission_batch import EmissionBatch

_MAX_SINGLES_PER_RUN: Final = 500
_MAX_GROUPS_PER_RUN: Final = 1_000
"""How many groups go through the processors together at most."""

_CRASH_STAGE: Final = "window"
_MAX_BATCHES_PER_FORK: Final = 1_000
"""Batches that are tried at most in one forked process, where a worker has died."""

_MAX_MESSAGES_PER_FORK: Final = 10_000
_IMMEDIATE_REASONS: Final = ("each", "event", "count")
FIRST_ORDER: Final = -(2**63)
"""The order of what goes ahead of all windows that close."""

_LAST_ORDER: Final = 2**63 - 1
_MESSAGES_OF: Final = attrgetter("messages")

T = TypeVar("T")
Outcome = tuple[Emission, Iterable[Batch]]
"""An emission, and the batches that the processors make of it."""

ApplyMapping = Callable[[Sequence[Emission]], list[Message | None]]
"""Applies the mapping that groups were aggregated for; None stands for a deleted message."""

MarkKeys = Callable[[Sequence[Emission], Sequence[Batch]], Processor]
"""Gives a processor that tells the state by key which batch comes next; see `keyed_routes`."""


class RouteStrategy(Protocol):
    """Takes emissions to an output."""

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions that follow one another, of one order and aggregated for one mapping."""


class EmissionProcessing(Protocol):
    """Makes batches of emissions."""

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the processors."""


class SingleProcessing(EmissionProcessing, Protocol):
    """Makes batches of emissions, and can do it one by one."""

    def run_singly(self, emissions: Iterable[Emission]) -> Iterator[Outcome]:
        """Run each emission by itself; its batches are to be taken before the next outcome."""


@dataclass(frozen=True, slots=True)
class ProcessedRoute:
    """Counts emissions, processes them, and gives the batches to an output."""

    processing: EmissionProcessing
    output: Stage
    stats: EmissionStats
    ex: Execution

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions; see `RouteStrategy`."""
        batches = self.processing.run(self.stats.count_each(emissions))
        return self.output.payloads(batches, order, self.ex)


@dataclass(frozen=True, slots=True)
class DroppedRoute:
    """Gives messages that only `late_output` gets to it, uncounted and unprocessed."""

    output: Stage
    ex: Execution

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions; see `RouteStrategy`."""
        return self.output.payloads(map(_MESSAGES_OF, emissions), order, self.ex)


@dataclass(frozen=True, slots=True)
class PlainRoute:
    """Maps groups, and encodes the messages at once: nothing else is done before they are written.

    Each message has its window's own order, so groups of many windows go together.
    """

    apply: ApplyMapping
    output: OutputStage
    stats: EmissionStats
    ex: Execution

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions; see `RouteStrategy`."""
        for some in _cut_items(self.stats.count_each(emissions), _MAX_GROUPS_PER_RUN):
            yield from self.output.encode_in_order(map(order_of, some), self.apply(some), self.ex)


@dataclass(frozen=True, slots=True)
class PlainBatchRoute:
    """Does what `PlainRoute` does for emissions that are many groups each."""

    aggregated: AggregatedPipeline
    output: OutputStage
    stats: EmissionStats
    ex: Execution

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions; see `RouteStrategy`."""
        for batch in emissions:
            assert isinstance(batch, EmissionBatch)
            self.stats.add_batch(batch)
            orders = [min(end, _LAST_ORDER) for end in batch.ends]
            written = self.aggregated.write_results(batch.groups)
            if written is not None:
                yield from self.output.encode_texts_in_order(orders, written, self.ex)
                continue
            messages = self.aggregated.apply_mapping(batch.groups.build_groups())
            yield from self.output.encode_in_order(orders, messages, self.ex)


@dataclass(frozen=True, slots=True)
class SingleRoute:
    """Takes messages of which each is a batch by itself, many at once.

    They are so few that they are still in the processor's cache when they are encoded.
    """

    processors: Sequence[Processor]
    output: Stage
    stats: EmissionStats
    ex: Execution

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions; see `RouteStrategy`."""
        messages = chain.from_iterable(map(_MESSAGES_OF, self.stats.count_each(emissions)))
        for some in _cut_items(messages, _MAX_SINGLES_PER_RUN):
            batches = run_each(self.processors, some, self.ex)
            yield from self.output.payloads(batches, order, self.ex)


@dataclass(frozen=True, slots=True)
class SplitBatchRoute:
    """Takes the groups of emissions that are many groups each one by one."""

    run_groups: Callable[[Iterable[Emission]], Iterator[Payload]]

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions; see `RouteStrategy`."""
        for batch in emissions:
            assert isinstance(batch, EmissionBatch)
            yield from self.run_groups(batch.iterate_emissions())


@dataclass(frozen=True, slots=True)
class WholeWindows:
    """Runs the batch of each window through processors."""

    processors: Sequence[Processor]
    ex: Execution

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the processors."""
        return run(self.processors, map(_MESSAGES_OF, emissions), self.ex)

    def run_singly(self, emissions: Iterable[Emission]) -> Iterator[Outcome]:
        """Run each emission by itself; see `SingleProcessing`."""
        return ((one, run(self.processors, [one.messages], self.ex)) for one in emissions)


@dataclass(frozen=True, slots=True)
class MappedGroups:
    """Runs groups through their mapping, which nothing follows."""

    apply: ApplyMapping

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the mapping."""
        for some in _cut_items(emissions, _MAX_GROUPS_PER_RUN):
            yield from ([message] for message in self.apply(some) if message is not None)


@dataclass(frozen=True, slots=True)
class AggregatedWindows:
    """Runs groups through their mapping and the processors that follow it, many at once."""

    aggregated: AggregatedPipeline

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the processors."""
        for some in _cut_items(emissions, _MAX_GROUPS_PER_RUN):
            yield from self.aggregated.run(groups_of(some))

    def run_singly(self, emissions: Iterable[Emission]) -> Iterator[Outcome]:
        """Run each emission by itself behind its mapping; see `SingleProcessing`."""
        for some in _cut_items(emissions, _MAX_GROUPS_PER_RUN):
            yield from zip(some, self.aggregated.run_groups_singly(groups_of(some)), strict=True)


class EmptyWindows:
    """Runs windows without messages: a mapping that comes first sees none, and is run once.

    Other processors get one message, null with the window's metadata.
    """

    def __init__(self, plan: Plan, processors: Sequence[Processor], ex: Execution) -> None:
        """Take the plan and its processors, built, and the run in which they are counted."""
        self._processors = processors
        self._ex = ex
        self._mapping: Mapping | None = None
        first = plan.processors[0] if plan.processors else None
        if first is not None and first.name in MAPPING_PROCESSORS:
            self._mapping = compile_mapping(first.config)
            self._origin = ComponentRef(first)

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the processors."""
        for _, batches in self.run_singly(emissions):
            yield from batches

    def run_singly(self, emissions: Iterable[Emission]) -> Iterator[Outcome]:
        """Run each emission by itself; see `SingleProcessing`."""
        for emission in emissions:
            window = emission.messages
            assert isinstance(window, EmptyWindow)
            yield emission, self._run_window(window)

    def _run_window(self, window: EmptyWindow) -> Iterator[Batch]:
        # Not before it is iterated: only then is its key's state at hand.
        if self._mapping is None:
            yield from run(self._processors, [[window.message]], self._ex)
            return
        (made,) = self._mapping.apply_firsts([window], self._ex, self._origin.fail)
        if made is not None:
            yield from run(self._processors[1:], [[made]], self._ex)


class PastCrashes:
    """Runs emissions through processors where a worker has died: each batch has its number.

    Some are at hand before they are looked at, so that a process that is forked to try them asks
    nothing of the shard's state.
    """

    def __init__(
        self,
        processors: Sequence[Processor],
        ex: Execution,
        *,
        splits_messages: bool = False,
        mark_keys: MarkKeys | None = None,
    ) -> None:
        """Take the processors and the run.

        Args:
            processors: what batches go through.
            ex: the run.
            splits_messages: each message of an emission is a batch.
            mark_keys: gives the processor that goes ahead where state is kept by key.
        """
        self._processors = processors
        self._ex = ex
        self._splits_messages = splits_messages
        self._mark_keys = mark_keys

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the processors."""
        for some in self._portions(emissions):
            for made in self._run_portion(some):
                yield from made

    def run_singly(self, emissions: Iterable[Emission]) -> Iterator[Outcome]:
        """Run each emission by itself; see `SingleProcessing`."""
        for some in self._portions(emissions):
            # Where something was found there are fewer outcomes, and the task fails.
            yield from zip(some, self._run_portion(some), strict=False)

    def _portions(self, emissions: Iterable[Emission]) -> Iterator[list[Emission]]:
        return cut_portions(
            emissions, _MAX_MESSAGES_PER_FORK, _count_messages, _MAX_BATCHES_PER_FORK
        )

    def _run_portion(self, some: Sequence[Emission]) -> Iterator[list[Batch]]:
        batches = [one.messages for one in some]
        if self._splits_messages:
            batches = [[message] for messages in batches for message in messages]
        processors = self._processors_of(some)
        if self._mark_keys is not None:
            processors = [self._mark_keys(some, batches), *processors]
        crashes = self._ex.crashes
        batches_of_each: Iterator[list[Batch]] = crashes.run_each_batch(
            processors, batches, self._ex, _CRASH_STAGE
        )
        return batches_of_each

    def _processors_of(self, some: Sequence[Emission]) -> Sequence[Processor]:
        return self._processors


class GroupsPastCrashes(PastCrashes):
    """Runs groups through their mapping and the processors that follow it, past crashes."""

    def __init__(
        self, aggregated: AggregatedPipeline, ex: Execution, mark_keys: MarkKeys | None = None
    ) -> None:
        super().__init__((), ex, mark_keys=mark_keys)
        self._aggregated = aggregated

    def _processors_of(self, some: Sequence[Emission]) -> Sequence[Processor]:
        groups = groups_of(some)
        for group in groups:
            self._aggregated.count_group(group)
        return self._aggregated.processors_for(groups[0].text)


def groups_of(emissions: Sequence[Emission]) -> list[AggregatedGroup]:
    """Return the groups that emissions are."""
    return [one.messages for one in emissions]  # type: ignore[misc]


def order_of(emission: Emission) -> int:
    """Return the place of a batch among those of all shards in a micro-batch."""
    if emission.end is None or emission.reason in _IMMEDIATE_REASONS:
        # What is in no window goes ahead of those that close, and what an event made come out
        # keeps the order of the events.
        return FIRST_ORDER
    return min(emission.end, _LAST_ORDER)


def _cut_items(items: Iterable[T], count: int) -> Iterator[list[T]]:
    """Cut items into lists of `count`; the last may be shorter."""
    iterator = iter(items)
    while some := list(islice(iterator, count)):
        yield some


def _count_messages(emission: Emission) -> int:
    return len(emission.messages)
