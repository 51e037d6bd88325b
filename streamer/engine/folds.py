"""Which processors the groups of a folded window go through."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.bloblang.folding import FoldedBatch
from streamer.failure import Origin
from streamer.pipeline import Processor
from streamer.plan import Plan
from streamer.plan.fold import mapping_place
from streamer.processors.mapping import MappingProcessor
from streamer.window.folds.groups import fold_for


class FoldedPipeline:
    """The processors that folded batches go through: their own mapping, then what follows it."""

    def __init__(self, plan: Plan, processors: Sequence[Processor]) -> None:
        """Take the plan and its processors, built."""
        self._plan = plan
        self._built = processors
        self._by_text: dict[str, list[Processor]] = {}

    def processors(self, batch: FoldedBatch) -> list[Processor]:
        """Return the processors for a batch, by the mapping that it was folded for."""
        found = self._by_text.get(batch.text)
        if found is None:
            place = mapping_place(self._plan.key)
            # The mapping of an earlier config speaks in the name of what stands there now.
            plan = self._plan
            component = plan.processors[place] if place < len(plan.processors) else plan.output
            mapping = MappingProcessor(fold_for(batch.text).mapping, Origin(component))
            found = self._by_text[batch.text] = [mapping, *self._built[place + 1 :]]
        return found
