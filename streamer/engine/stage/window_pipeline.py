"""Runs the batches that windows emit through the processors to the outputs.

Batches that follow one another go together as far as nobody can tell: one by one, small windows
would cost more for what is done around each than for what is done with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.portions import cut_portions
from streamer.engine.report.emission_stats import EmissionStats
from streamer.engine.report.result_frame import Payload
from streamer.engine.stage.aggregated_pipeline import MAX_GROUPS_PER_RUN, AggregatedPipeline
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.plan import Plan
from streamer.sdk.processing import Processor, run, run_each
from streamer.window import Emission
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.fire.emission_batch import EmissionBatch

if TYPE_CHECKING:
    from streamer.engine.stage.result_capture import ResultCapture

_IMMEDIATE_REASONS: Final = ("each", "event", "count")
_MAX_SINGLES_PER_RUN: Final = 500
_CRASH_STAGE: Final = "window"
_MAX_BATCHES_PER_FORK: Final = 1_000
"""Batches that are tried at most in one forked process, where a worker has died."""

_MAX_MESSAGES_PER_FORK: Final = 10_000
_FIRST_ORDER, _LAST_ORDER = -(2**63), 2**63 - 1

Route = tuple[str, int, str]
"""What is done with a batch: its name, the batch's order, and the mapping it was folded for, or
whether it has been grouped. Batches of one way that follow one another go together."""


class WindowPipeline:
    """Takes the batches that one shard emits in a micro-batch."""

    def __init__(
        self, plan: Plan, processors: Sequence[Processor], stages: Sequence[Stage], ex: Execution
    ) -> None:
        """Take the stream's plan, its processors and outputs, built, and the run.

        Args:
            plan: the stream's plan.
            processors: those of its pipeline.
            stages: its outputs, by their numbers.
            ex: the run in which all is counted.
        """
        self._processors = processors
        self._stages = stages
        self._ex = ex
        self._aggregated = AggregatedPipeline(plan, processors, ex)
        self._emission_stats = EmissionStats(plan, ex)
        self._has_grouping_key = plan.key is not None and plan.key.replaces_grouping
        # Of such an output's bytes it is known which message they are of.
        plain = stages[0] if isinstance(stages[0], OutputStage) and stages[0].is_plain else None
        self._plain_output = plain if self._aggregated.ends_with_mapping else None
        self._result_capture: ResultCapture | None = None
        if plan.retention is not None:
            # Imported here: most streams keep no results.
            from streamer.engine.stage.result_capture import ResultCapture

            self._result_capture = ResultCapture(plan)

    def payloads(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        """Run batches through the processors and the outputs."""
        results = self._result_capture
        if results is None:
            yield from self._run_emissions(emissions)
            return
        for payload in self._run_emissions(emissions):
            yield payload
            yield from results.flush_if_full()
        yield from results.flush()

    def _run_emissions(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        first, ex = self._stages[0], self._ex
        if ex.crashes is not None:
            yield from self._run_past_crashes(emissions)
            return
        for (what, order, more), same in groupby(emissions, key=self._route):
            if what == "dropped":
                dropped = (emission.messages for emission in same)
                yield from self._stages[1].payloads(dropped, order, ex)
            elif what == "run":
                for emission in same:
                    assert isinstance(emission, EmissionBatch)
                    yield from self._run_together(emission)
            elif what == "folded":
                for groups in _portion_emissions(same, MAX_GROUPS_PER_RUN):
                    yield from self._run_aggregated(groups, order)
            elif what == "apart":
                for emission in self._count_emissions(same):
                    batches = run_each(self._processors, list(emission.messages), ex)
                    yield from first.payloads(batches, order, ex)
            elif what == "single":
                for ones in _portion_emissions(same, _MAX_SINGLES_PER_RUN):
                    messages = [emission.messages[0] for emission in self._count_emissions(ones)]
                    batches = run_each(self._processors, messages, ex)
                    yield from first.payloads(batches, order, ex)
            else:
                processors = self._processors[1:] if more else self._processors
                yield from first.payloads(self._run_whole(processors, same), order, ex)

    def _run_past_crashes(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        """Do what `_run_emissions` does where a worker has died: each batch is known by its number.

        Some are at hand before they are looked at, so that a process that is forked to try them
        asks nothing of the shard's state.
        """
        for (what, order, more), same in groupby(_split_runs(emissions), key=self._single_route):
            if what == "dropped":
                dropped = (emission.messages for emission in same)
                yield from self._stages[1].payloads(dropped, order, self._ex)
                continue
            processors = self._processors[1:] if what == "whole" and more else self._processors
            if what == "folded":
                processors = self._aggregated.processors_for(more)
            some = cut_portions(
                same, _MAX_MESSAGES_PER_FORK, _count_messages, _MAX_BATCHES_PER_FORK
            )
            batches = (
                made
                for each in some
                for made in self._run_past_known_crashes(what, processors, each)
            )
            yield from self._stages[0].payloads(batches, order, self._ex)
        self._ex.crashes.report()

    def _single_route(self, emission: Emission) -> Route:
        what, order, more = self._route(emission)
        return what, _order_of(emission) if what == "folded" else order, more

    def _run_past_known_crashes(
        self, what: str, processors: Sequence[Processor], emissions: Sequence[Emission]
    ) -> Iterator[Batch]:
        """Run batches of one way through processors, past those that end the process."""
        for emission in self._count_emissions(emissions):
            if isinstance(emission.messages, AggregatedGroup):
                self._aggregated.count_group(emission.messages)
        crashes, ex = self._ex.crashes, self._ex
        if what == "apart":
            singles = [[message] for emission in emissions for message in emission.messages]
            for made in crashes.run_each_batch(processors, singles, ex, _CRASH_STAGE):
                yield from made
            return
        batches = [emission.messages for emission in emissions]
        through = crashes.run_each_batch(processors, batches, ex, _CRASH_STAGE)
        # Where something was found there are fewer, and the task fails.
        for emission, made in zip(emissions, through, strict=False):
            if self._result_capture is not None:
                self._result_capture.begin(emission)
            for batch in made:
                if self._result_capture is not None:
                    self._result_capture.add(batch)
                yield batch

    def _run_whole(
        self, processors: Sequence[Processor], same: Iterable[Emission]
    ) -> Iterator[Batch]:
        results = self._result_capture
        if results is None:
            taken = (emission.messages for emission in self._count_emissions(same))
            yield from run(processors, taken, self._ex)
            return
        for emission in self._count_emissions(same):
            results.begin(emission)
            for batch in run(processors, [emission.messages], self._ex):
                results.add(batch)
                yield batch

    def _route(self, emission: Emission) -> Route:
        if isinstance(emission, EmissionBatch):
            return "run", _FIRST_ORDER, ""
        batch = emission.messages
        if emission.is_per_message:
            return "apart", _FIRST_ORDER, ""
        if emission.reason == "event" and len(batch) == 1 and self._result_capture is None:
            return "single", _FIRST_ORDER, ""
        if isinstance(batch, AggregatedGroup):
            return "folded", _FIRST_ORDER if self._plain_output else _order_of(emission), batch.text
        if emission.reason == "dropped":
            return "dropped", _order_of(emission), ""
        # The shard has grouped the window as the first processor would; only messages whose key
        # failed, which have the empty key, are still to be looked at by it.
        grouped = self._has_grouping_key and emission.key
        return "whole", _order_of(emission), "grouped" if grouped else ""

    def _run_aggregated(self, emissions: Sequence[Emission], order: int) -> Iterator[Payload]:
        """Run batches that were folded for one mapping; without a plain output, of one order."""
        groups: list[AggregatedGroup] = []
        for emission in self._count_emissions(emissions):
            assert isinstance(emission.messages, AggregatedGroup)
            groups.append(emission.messages)
        if self._plain_output is None:
            batches = (
                self._run_and_capture(emissions, groups)
                if self._result_capture
                else self._aggregated.run(groups)
            )
            yield from self._stages[0].payloads(batches, order, self._ex)
            return
        messages = self._aggregated.apply_mapping(groups)
        if self._result_capture is not None:
            self._result_capture.add_each(emissions, messages)
        yield from self._encode_in_order(map(_order_of, emissions), messages)

    def _run_together(self, run: EmissionBatch) -> Iterator[Payload]:
        """Run batches that came together through the processors and the outputs."""
        if (
            self._plain_output is None
            or self._result_capture is not None
            or not self._emission_stats.add_run(run)
        ):
            yield from self._run_emissions(run.iterate_emissions())
        else:
            yield from self._encode_in_order(run.ends, self._aggregated.apply_mapping(run.groups))

    def _encode_in_order(
        self, orders: Iterable[int], messages: list[Message | None]
    ) -> Iterator[Payload]:
        """Encode what the mapping has made of batches, by their orders."""
        assert self._plain_output is not None
        if None in messages:
            kept = [both for both in zip(orders, messages, strict=True) if both[1] is not None]
            orders, messages = [order for order, _ in kept], [message for _, message in kept]
        batch: Batch = messages  # type: ignore[assignment]
        yield from self._plain_output.encode_in_order(orders, batch, self._ex)

    def _run_and_capture(
        self, emissions: Sequence[Emission], groups: Sequence[AggregatedGroup]
    ) -> Iterator[Batch]:
        """Run groups as `AggregatedPipeline.run` does, and note what becomes of each."""
        assert self._result_capture is not None
        if self._aggregated.ends_with_mapping:
            messages = self._aggregated.apply_mapping(groups)
            self._result_capture.add_each(emissions, messages)
            yield from ([message] for message in messages if message is not None)
            return
        for emission, batches in zip(
            emissions, self._aggregated.run_groups_singly(groups), strict=True
        ):
            self._result_capture.begin(emission)
            for batch in batches:
                self._result_capture.add(batch)
                yield batch

    def _count_emissions(self, emissions: Iterable[Emission]) -> Iterator[Emission]:
        for emission in emissions:
            self._emission_stats.add(emission)
            yield emission


def _portion_emissions(
    emissions: Iterable[Emission], max_emissions: int
) -> Iterator[list[Emission]]:
    portion: list[Emission] = []
    for emission in emissions:
        portion.append(emission)
        if len(portion) >= max_emissions:
            yield portion
            portion = []
    if portion:
        yield portion


def _count_messages(emission: Emission) -> int:
    return len(emission.messages)


def _split_runs(emissions: Iterable[Emission]) -> Iterator[Emission]:
    for emission in emissions:
        if isinstance(emission, EmissionBatch):
            yield from emission.iterate_emissions()
        else:
            yield emission


def _order_of(emission: Emission) -> int:
    """Return the place of a batch among those of all shards in a micro-batch."""
    if emission.end is None or emission.reason in _IMMEDIATE_REASONS:
        # What is in no window goes ahead of those that close, and what an event made come out
        # keeps the order of the events.
        return _FIRST_ORDER
    return min(emission.end, _LAST_ORDER)
