"""Batches of folded windows that follow one another, given back together.

One by one, batches that make one message each cost more for what is done around each than for what
is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract.emission import Emission, WindowReason


@dataclass(slots=True)
class EmissionBatch(Emission):
    """Some batches; only who asks for such gets them, and one by one all others.

    `end`, `key` and `start` are None, and `messages` empty: each batch has its own.

    Attributes:
        groups: the batches, one at least, all folded for one mapping.
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
        """Give them one by one."""
        columns = (self.ends, self.groups, self.reasons, self.keys, self.starts)
        return map(Emission, *columns)
