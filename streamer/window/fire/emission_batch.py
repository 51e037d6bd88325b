"""Batches of aggregated windows that follow one another, emitted together.

One by one, batches that make one message each cost more for what is done around each than for what
is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract import Emission, WindowReason


@dataclass(slots=True)
class EmissionBatch(Emission):
    """Several aggregated batches; consumers that do not take such get them one by one.

    `end`, `key` and `start` are None, and `messages` empty: each batch has its own.

    Attributes:
        groups: the batches, one at least, all aggregated for one mapping.
        starts: by batch, of its window, ns.
        ends: by batch, of its window, ns.
        reasons: by batch, why it comes.
        keys: by batch, its window's key; None where windows have none.
    """

    groups: Sequence[AggregatedGroup] = ()
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    reasons: Sequence[WindowReason] = ()
    keys: Sequence[bytes | None] = ()

    @classmethod
    def from_columns(
        cls,
        groups: Sequence[AggregatedGroup],
        starts: Sequence[int],
        ends: Sequence[int],
        reasons: Sequence[WindowReason],
        keys: Sequence[bytes | None],
    ) -> EmissionBatch:
        """Return batches as a run."""
        return cls(None, [], reasons[0], None, None, False, groups, starts, ends, reasons, keys)

    def iterate_emissions(self) -> Iterator[Emission]:
        """Return the batches one by one."""
        columns = (self.ends, self.groups, self.reasons, self.keys, self.starts)
        return map(Emission, *columns)
