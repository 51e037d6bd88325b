"""Batches of folded windows that follow one another, given back together.

One by one, batches that make one message each cost more for what is done around each than for what
is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamer.window.emission import Emission, WindowReason
from streamer.window.folds.release import FoldedGroup


@dataclass(slots=True)
class Run(Emission):
    """Some batches; only who asks for such gets them, and one by one all others.

    `end`, `key` and `start` are None, and `messages` empty: each batch has its own.

    Attributes:
        groups: the batches, one at least, all folded for one mapping.
        starts: by batch, of its window, ns.
        ends: by batch, of its window, ns.
        reasons: by batch, why it comes.
        keys: by batch, its window's key; None where windows have none.
    """

    groups: Sequence[FoldedGroup] = ()
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    reasons: Sequence[WindowReason] = ()
    keys: Sequence[bytes | None] = ()

    @classmethod
    def of(
        cls,
        groups: Sequence[FoldedGroup],
        starts: Sequence[int],
        ends: Sequence[int],
        reasons: Sequence[WindowReason],
        keys: Sequence[bytes | None],
    ) -> Run:
        """Return batches as a run."""
        return cls(None, [], reasons[0], None, None, False, groups, starts, ends, reasons, keys)

    def singly(self) -> Iterator[Emission]:
        """Give them one by one."""
        columns = (self.ends, self.groups, self.reasons, self.keys, self.starts)
        return map(Emission, *columns)
