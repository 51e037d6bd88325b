"""Which processors the groups of a folded window go through."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.bloblang import Mapping
from streamer.failure import Origin
from streamer.message import Batch, Execution
from streamer.observed import observed
from streamer.pipeline import Processor, run, run_each
from streamer.plan import Plan
from streamer.plan.fold import mapping_place
from streamer.processors.mapping import MappingProcessor
from streamer.tally import Tally
from streamer.window.folds.groups import fold_for
from streamer.window.folds.release import FoldedGroup

TOGETHER = 1_000
"""How many groups go through the processors together at most."""


class FoldedPipeline:
    """The processors that folded batches go through: their own mapping, then what follows it."""

    def __init__(self, plan: Plan, processors: Sequence[Processor], ex: Execution) -> None:
        """Take the plan and its processors, built, and the run in which they are counted."""
        place = mapping_place(plan.key)
        # The mapping of an earlier config speaks in the name of what stands there now.
        known = place < len(plan.processors)
        self._origin = Origin(plan.processors[place] if known else plan.output)
        self._tally = ex.tally(self._origin.key) if known else Tally()
        self._ex = ex
        self._rest = processors[place + 1 :]
        self._by_text: dict[str, tuple[Mapping, Processor]] = {}

    def run(self, groups: Sequence[FoldedGroup]) -> list[Batch]:
        """Run groups that were folded for one mapping through the processors.

        A window may have very many, of which each makes one message at most: every processor takes
        all of them at once, as far as it can. Nobody can tell but by the order of log lines.
        """
        found = self._by_text.get(groups[0].text)
        if found is None:
            mapping = fold_for(groups[0].text).mapping
            alone = observed(MappingProcessor(mapping, self._origin), self._origin)
            found = self._by_text[groups[0].text] = (mapping, alone)
        mapping, processor = found
        ex = self._ex
        # The mapping is given the first message only, and stands for all.
        self._tally.received += sum(group.size for group in groups)
        if ex.strict and any(group[0].error is not None for group in groups):
            self._tally.received -= len(groups)
            return list(run([processor, *self._rest], groups, ex))
        began = ex.elapsed()
        messages = mapping.apply_firsts(groups, ex, self._origin.fail)
        tally = self._tally
        tally.timed(ex.elapsed() - began, len(groups))
        tally.batches_received += len(groups)
        tally.sent += len(messages)
        tally.batches_sent += len(messages)
        return run_each(self._rest, messages, ex)
