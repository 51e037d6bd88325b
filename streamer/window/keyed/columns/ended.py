"""The batches of sessions that have ended: objects are made of columns here, and no sooner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np

from streamer.message import Message
from streamer.window.emission import Emission, WindowReason
from streamer.window.folds.release import FoldedGroup
from streamer.window.keyed.columns.lanes import Lanes
from streamer.window.keyed.columns.numbers import Bools
from streamer.window.keyed.columns.opened import Opened
from streamer.window.keyed.outputs import CLOSED
from streamer.window.labels import labels_of
from streamer.window.metadata import decode_meta, spelling_of
from streamer.window.run import Run

TOGETHER: Final = 1_000
"""How many batches are made at a time."""

Place = tuple[int, ...]

Decoded = tuple[Mapping[str, Any], str | None, bytes | None]
"""Metadata, the error that marks a message, and how it spells its key if otherwise than others."""


class Ended:
    """Sessions that have ended, in the order in which they come out."""

    def __init__(self, sessions: Opened, due: Bools, lanes: Lanes | None, keyed: bool) -> None:
        """Take them.

        Args:
            sessions: the sessions, in any order.
            due: which of them the clock has closed; the others go with the end of the input.
            lanes: the parts of their mapping; None when there are no sessions.
            keyed: whether messages are told of a key.
        """
        order = np.lexsort((sessions.firsts, sessions.ends))
        self._sessions = sessions.take(order)
        self._due = due[order]
        self._lanes = lanes
        self._keyed = keyed

    def __len__(self) -> int:
        return len(self._sessions)

    def places(self) -> Iterator[Place]:
        """Give the places of the batches among others; see `outputs.Output`."""
        some = self._sessions
        ends, firsts, starts = some.ends.tolist(), some.firsts.tolist(), some.starts.tolist()
        return ((CLOSED, *place) for place in zip(ends, firsts, starts, strict=True))

    def runs(self) -> Iterator[Run]:
        """Give the batches, many at a time."""
        decoded = [(*decode_meta(meta), spelling_of(meta)) for meta in self._sessions.metas]
        for first in range(0, len(self), TOGETHER):
            chosen = np.arange(first, min(first + TOGETHER, len(self)))
            yield self._run(self._sessions.take(chosen), self._due[chosen], decoded)

    def _run(self, some: Opened, due: Bools, decoded: list[Decoded]) -> Run:
        assert self._lanes is not None
        text, which = self._lanes.text, some.meta_ids.tolist()
        reasons: list[WindowReason] = ["final" if closed else "flush" for closed in due.tolist()]
        spelt = some.keys
        if any(spelling for _, _, spelling in decoded):
            spelt = [decoded[n][2] or key for n, key in zip(which, some.keys, strict=True)]
        # A session ends with the latest of its events.
        labels = labels_of(some.starts, some.ends, reasons, some.ends, spelt if self._keyed else ())
        groups = []
        for payload, number, told, size, values in zip(
            some.payloads,
            which,
            labels,
            some.counts.tolist(),
            self._lanes.values(some.numbers, some.counts),
            strict=True,
        ):
            own, error, _ = decoded[number]
            message = Message(payload, {**own, **told} if own else told, error)
            groups.append(FoldedGroup(message, text, values.__getitem__, size))
        keys = some.keys if self._keyed else [None] * len(groups)
        return Run.of(groups, some.starts.tolist(), some.ends.tolist(), reasons, keys)

    def emissions(self) -> Iterator[Emission]:
        """Give the batches one by one."""
        return chain.from_iterable(run.singly() for run in self.runs())
