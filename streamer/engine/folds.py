"""Folded windows in the engine: since when they fold, and which processors their groups go through.

When a stream is started with another mapping, windows that are open were folded for the one before,
and finish on it. Until the driver knows how far these reach, messages are kept whole; those are
folded for the mapping of their window when it closes. From then on, later windows fold for the new
mapping. All this is in the offsets of Spark's log, so that a replay folds the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.bloblang.folding import FoldedBatch
from streamer.failure import Origin
from streamer.pipeline import Processor
from streamer.plan import Plan
from streamer.plan.fold import mapping_place
from streamer.processors.mapping import MappingProcessor
from streamer.window.folds.groups import fold_for


class FoldedSince(NamedTuple):
    """Which windows fold for the mapping of which identity.

    Attributes:
        identity: the mapping's; None when no window was ever folded, so that any may.
        after: event times, ns, up to this one belong to windows that were begun under another
            mapping; None when there are none.
    """

    identity: str | None
    after: int | None


FROM_THE_START: Final = FoldedSince(None, None)


def folded_since(offset: Mapping[str, Any]) -> FoldedSince:
    """Return what an offset says."""
    found = offset.get("folded")
    return FROM_THE_START if found is None else FoldedSince(*found)


def next_folded(
    before: FoldedSince, identity: str, newest_end: int | None, known: bool
) -> FoldedSince:
    """Return what the offset of the next micro-batch says.

    Args:
        before: what the one before says.
        identity: of the mapping of this start; empty when windows keep messages.
        newest_end: the end of the newest window that holds messages, ns; None when none does.
        known: whether `newest_end` was told by a micro-batch of this start.
    """
    if not identity or before.identity == identity:
        return before
    if before.identity is None:
        return FoldedSince(identity, None)
    return FoldedSince(identity, newest_end) if known else before


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
