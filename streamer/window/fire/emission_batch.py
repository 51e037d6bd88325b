"""Batches of aggregated windows that follow one another, emitted together.

One by one, batches that make one message each cost more for what is done around each than for what
is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.window.contract import Emission, WindowReason
from streamer.window.fire.group_columns import GroupColumns


@dataclass(slots=True)
class EmissionBatch(Emission):
    """Several aggregated batches; consumers that do not take such get them one by one.

    `end`, `key` and `start` are None, and `messages` empty: each batch has its own.

    Attributes:
        columns: the batches, one at least.
        starts: by batch, of its window, ns; None where it is not told.
        ends: by batch, of its window, ns.
        reasons: by batch, why it comes.
        keys: by batch, its window's key; None where windows have none.
    """

    columns: GroupColumns | None = None
    starts: Sequence[int | None] = ()
    ends: Sequence[int] = ()
    reasons: Sequence[WindowReason] = ()
    keys: Sequence[bytes | None] = ()

    @classmethod
    def from_columns(
        cls,
        columns: GroupColumns,
        starts: Sequence[int | None],
        ends: Sequence[int],
        reasons: Sequence[WindowReason],
        keys: Sequence[bytes | None],
    ) -> EmissionBatch:
        """Return batches as a run."""
        return cls(
            *(None, [], reasons[0]),
            columns=columns,
            starts=starts,
            ends=ends,
            reasons=reasons,
            keys=keys,
        )

    @property
    def groups(self) -> GroupColumns:
        """The batches, in columns."""
        assert self.columns is not None
        return self.columns

    def iterate_emissions(self) -> Iterator[Emission]:
        """Return the batches one by one."""
        columns = (self.ends, self.groups.build_groups(), self.reasons, self.keys, self.starts)
        return map(Emission, *columns)
