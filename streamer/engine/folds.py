"""Which processors the groups of a folded window go through."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.failure import Origin
from streamer.message import Execution
from streamer.observed import observed
from streamer.pipeline import Processor
from streamer.plan import Plan
from streamer.plan.fold import mapping_place
from streamer.processors.mapping import MappingProcessor
from streamer.tally import Tally
from streamer.window.folds.groups import fold_for
from streamer.window.folds.release import FoldedGroup


class FoldedPipeline:
    """The processors that folded batches go through: their own mapping, then what follows it."""

    def __init__(self, plan: Plan, processors: Sequence[Processor], ex: Execution) -> None:
        """Take the plan and its processors, built, and the run in which they are counted."""
        place = mapping_place(plan.key)
        # The mapping of an earlier config speaks in the name of what stands there now.
        known = place < len(plan.processors)
        self._origin = Origin(plan.processors[place] if known else plan.output)
        self._tally = ex.tally(self._origin.key) if known else Tally()
        self._rest = processors[place + 1 :]
        self._by_text: dict[str, list[Processor]] = {}

    def processors(self, batch: FoldedGroup) -> list[Processor]:
        """Return the processors for a batch, by the mapping that it was folded for."""
        # The mapping is given the first message only, and stands for all.
        self._tally.received += batch.size - 1
        found = self._by_text.get(batch.text)
        if found is None:
            mapping = MappingProcessor(fold_for(batch.text).mapping, self._origin)
            found = self._by_text[batch.text] = [observed(mapping, self._origin), *self._rest]
        return found
