"""What leaves the windows of a shard, on its way through the processors to the outputs.

Batches that follow one another go together as far as nobody can tell: one by one, small windows
would cost more for what is done around each than for what is done with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from streamer.engine.emitted import Emitted
from streamer.engine.encode import OutputStage, Stage
from streamer.engine.folds import TOGETHER, FoldedPipeline
from streamer.engine.frame import Payload
from streamer.engine.portions import cut_portions
from streamer.message import Batch, Execution, Message
from streamer.pipeline import Processor, run, run_each
from streamer.plan import Plan
from streamer.window import Emission
from streamer.window.folds.release import FoldedGroup
from streamer.window.run import Run

if TYPE_CHECKING:
    from streamer.engine.results import Results

_AT_ONCE: Final = ("each", "event", "count")
_SINGLES: Final = 500
_STAGE: Final = "window"
_TRIED: Final = 1_000
"""Batches that are tried at most in one forked process, where a worker has died."""

_TRIED_MESSAGES: Final = 10_000
_FIRST, _LAST = -(2**63), 2**63 - 1

Way = tuple[str, int, str]
"""What is done with a batch: its name, the batch's order, and the mapping it was folded for, or
whether it has been grouped. Batches of one way that follow one another go together."""


class Leaving:
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
        self._folding = FoldedPipeline(plan, processors, ex)
        self._emitted = Emitted(plan, ex)
        self._groups = plan.key is not None and plan.key.replaces_grouping
        # Of such an output's bytes it is known which message they are of.
        plain = stages[0] if isinstance(stages[0], OutputStage) and stages[0].plain else None
        self._plain = plain if self._folding.alone else None
        self._results: Results | None = None
        if plan.retention is not None:
            # Imported here: most streams keep no results.
            from streamer.engine.results import Results

            self._results = Results(plan)

    def payloads(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        """Run batches through the processors and the outputs."""
        results = self._results
        if results is None:
            yield from self._leaving(emissions)
            return
        for payload in self._leaving(emissions):
            yield payload
            yield from results.full()
        yield from results.rest()

    def _leaving(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        first, ex = self._stages[0], self._ex
        if ex.crashes is not None:
            yield from self._past_crashes(emissions)
            return
        for (what, order, more), same in groupby(emissions, key=self._way):
            if what == "dropped":
                dropped = (emission.messages for emission in same)
                yield from self._stages[1].payloads(dropped, order, ex)
            elif what == "run":
                for emission in same:
                    assert isinstance(emission, Run)
                    yield from self._together(emission)
            elif what == "folded":
                for groups in _portions(same, TOGETHER):
                    yield from self._folded(groups, order)
            elif what == "apart":
                for emission in self._counted(same):
                    batches = run_each(self._processors, list(emission.messages), ex)
                    yield from first.payloads(batches, order, ex)
            elif what == "single":
                for ones in _portions(same, _SINGLES):
                    messages = [emission.messages[0] for emission in self._counted(ones)]
                    batches = run_each(self._processors, messages, ex)
                    yield from first.payloads(batches, order, ex)
            else:
                processors = self._processors[1:] if more else self._processors
                yield from first.payloads(self._run(processors, same), order, ex)

    def _past_crashes(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        """Do what `_leaving` does where a worker has died: each batch is known by its number.

        Some are at hand before they are looked at, so that a process that is forked to try them
        asks nothing of the shard's state.
        """
        for (what, order, more), same in groupby(_singly(emissions), key=self._single_way):
            if what == "dropped":
                dropped = (emission.messages for emission in same)
                yield from self._stages[1].payloads(dropped, order, self._ex)
                continue
            processors = self._processors[1:] if what == "whole" and more else self._processors
            if what == "folded":
                processors = self._folding.processors(more)
            some = cut_portions(same, _TRIED_MESSAGES, _size_of, _TRIED)
            batches = (made for each in some for made in self._tried(what, processors, each))
            yield from self._stages[0].payloads(batches, order, self._ex)
        self._ex.crashes.report()

    def _single_way(self, emission: Emission) -> Way:
        what, order, more = self._way(emission)
        return what, _order(emission) if what == "folded" else order, more

    def _tried(
        self, what: str, processors: Sequence[Processor], emissions: Sequence[Emission]
    ) -> Iterator[Batch]:
        """Run batches of one way through processors, past those that end the process."""
        for emission in self._counted(emissions):
            if isinstance(emission.messages, FoldedGroup):
                self._folding.count(emission.messages)
        crashes, ex = self._ex.crashes, self._ex
        if what == "apart":
            singles = [[message] for emission in emissions for message in emission.messages]
            for made in crashes.passed_apart(processors, singles, ex, _STAGE):
                yield from made
            return
        batches = [emission.messages for emission in emissions]
        through = crashes.passed_apart(processors, batches, ex, _STAGE)
        # Where something was found there are fewer, and the task fails.
        for emission, made in zip(emissions, through, strict=False):
            if self._results is not None:
                self._results.begin(emission)
            for batch in made:
                if self._results is not None:
                    self._results.add(batch)
                yield batch

    def _run(self, processors: Sequence[Processor], same: Iterable[Emission]) -> Iterator[Batch]:
        results = self._results
        if results is None:
            taken = (emission.messages for emission in self._counted(same))
            yield from run(processors, taken, self._ex)
            return
        for emission in self._counted(same):
            results.begin(emission)
            for batch in run(processors, [emission.messages], self._ex):
                results.add(batch)
                yield batch

    def _way(self, emission: Emission) -> Way:
        if isinstance(emission, Run):
            return "run", _FIRST, ""
        batch = emission.messages
        if emission.apart:
            return "apart", _FIRST, ""
        if emission.reason == "event" and len(batch) == 1 and self._results is None:
            return "single", _FIRST, ""
        if isinstance(batch, FoldedGroup):
            return "folded", _FIRST if self._plain else _order(emission), batch.text
        if emission.reason == "dropped":
            return "dropped", _order(emission), ""
        # The shard has grouped the window as the first processor would; only messages whose key
        # failed, which have the empty key, are still to be looked at by it.
        grouped = self._groups and emission.key
        return "whole", _order(emission), "grouped" if grouped else ""

    def _folded(self, emissions: Sequence[Emission], order: int) -> Iterator[Payload]:
        """Run batches that were folded for one mapping; without a plain output, of one order."""
        groups: list[FoldedGroup] = []
        for emission in self._counted(emissions):
            assert isinstance(emission.messages, FoldedGroup)
            groups.append(emission.messages)
        if self._plain is None:
            batches = self._noted(emissions, groups) if self._results else self._folding.run(groups)
            yield from self._stages[0].payloads(batches, order, self._ex)
            return
        messages = self._folding.mapped(groups)
        if self._results is not None:
            self._results.add_each(emissions, messages)
        yield from self._ordered(map(_order, emissions), messages)

    def _together(self, run: Run) -> Iterator[Payload]:
        """Run batches that came together through the processors and the outputs."""
        if self._plain is None or self._results is not None or not self._emitted.add_run(run):
            yield from self._leaving(run.singly())
        else:
            yield from self._ordered(run.ends, self._folding.mapped(run.groups))

    def _ordered(self, orders: Iterable[int], messages: list[Message | None]) -> Iterator[Payload]:
        """Encode what the mapping has made of batches, by their orders."""
        assert self._plain is not None
        if None in messages:
            kept = [both for both in zip(orders, messages, strict=True) if both[1] is not None]
            orders, messages = [order for order, _ in kept], [message for _, message in kept]
        batch: Batch = messages  # type: ignore[assignment]
        yield from self._plain.ordered(orders, batch, self._ex)

    def _noted(
        self, emissions: Sequence[Emission], groups: Sequence[FoldedGroup]
    ) -> Iterator[Batch]:
        """Run groups as `FoldedPipeline.run` does, and note what becomes of each."""
        assert self._results is not None
        if self._folding.alone:
            messages = self._folding.mapped(groups)
            self._results.add_each(emissions, messages)
            yield from ([message] for message in messages if message is not None)
            return
        for emission, batches in zip(emissions, self._folding.run_apart(groups), strict=True):
            self._results.begin(emission)
            for batch in batches:
                self._results.add(batch)
                yield batch

    def _counted(self, emissions: Iterable[Emission]) -> Iterator[Emission]:
        for emission in emissions:
            self._emitted.add(emission)
            yield emission


def _portions(emissions: Iterable[Emission], most: int) -> Iterator[list[Emission]]:
    portion: list[Emission] = []
    for emission in emissions:
        portion.append(emission)
        if len(portion) >= most:
            yield portion
            portion = []
    if portion:
        yield portion


def _size_of(emission: Emission) -> int:
    return len(emission.messages)


def _singly(emissions: Iterable[Emission]) -> Iterator[Emission]:
    for emission in emissions:
        if isinstance(emission, Run):
            yield from emission.singly()
        else:
            yield emission


def _order(emission: Emission) -> int:
    """Return the place of a batch among those of all shards in a micro-batch."""
    if emission.end is None or emission.reason in _AT_ONCE:
        # What is in no window goes ahead of those that close, and what an event made come out
        # keeps the order of the events.
        return _FIRST
    return min(emission.end, _LAST)
