"""Counts emitted windows for the buffer's metrics, and for a `group_by_value` done by the shard.

A shard that keeps its windows by key has grouped them before the processor that asks for it, which
is skipped; it is counted all the same. A window is a batch in each shard that has some of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import ne

from streamer.core.execution import Execution
from streamer.plan import Plan
from streamer.sdk.component_ref import ComponentRef
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract import Emission
from streamer.window.fire.emission_batch import EmissionBatch


class EmissionStats:
    """Counts the batches that one shard emits in a micro-batch."""

    def __init__(self, plan: Plan, ex: Execution) -> None:
        """Take the stream's plan, and the run in which it is counted."""
        self._buffer = ex.stats_of(ComponentRef(plan.buffer).key)
        groups = plan.key is not None and plan.key.replaces_grouping
        self._group = ex.stats_of(ComponentRef(plan.processors[0]).key) if groups else None
        self._end: int | None = None

    def add(self, emission: Emission) -> None:
        """Count a batch of a window, or a message that has passed by all windows."""
        batch = emission.messages
        size = batch.size if isinstance(batch, AggregatedGroup) else len(batch)
        buffer, group = self._buffer, self._group
        # Groups of one window come one after another; a window of a key is a batch by itself.
        is_grouped = group is not None and emission.key
        begins = not is_grouped or emission.end is None or emission.end != self._end
        self._end = emission.end
        buffer.sent += size
        buffer.batches_sent += size if emission.is_per_message else begins
        if group is not None and is_grouped:
            group.received += size
            group.sent += size
            group.batches_received += begins
            group.batches_sent += 1

    def add_batch(self, batch: EmissionBatch) -> None:
        """Count groups that come in one emission, each with a key if the shard has grouped them."""
        size, count = sum(batch.groups.sizes), len(batch.groups)
        buffer, group = self._buffer, self._group
        buffer.sent += size
        if group is None:
            buffer.batches_sent += count
            return
        windows = [self._end, *batch.ends]
        begins = sum(map(ne, windows, batch.ends))
        self._end = batch.ends[-1]
        buffer.batches_sent += begins
        group.received += size
        group.sent += size
        group.batches_received += begins
        group.batches_sent += count

    def count_each(self, emissions: Iterable[Emission]) -> Iterator[Emission]:
        """Count emissions as they are taken."""
        for emission in emissions:
            self.add(emission)
            yield emission
