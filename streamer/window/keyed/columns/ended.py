"""The batches of sessions that have ended: objects are made of columns here, and no sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np

from streamer.durations import MILLISECOND
from streamer.message import Message
from streamer.timestamps import format_rfc3339
from streamer.window.emission import Emission, WindowReason
from streamer.window.folds.release import FoldedGroup
from streamer.window.keyed.columns.lanes import Lanes
from streamer.window.keyed.columns.numbers import Bools
from streamer.window.keyed.columns.opened import Opened
from streamer.window.keyed.outputs import CLOSED
from streamer.window.labels import EMIT, END, END_MS, KEY, NEWEST, START, START_MS, key_text
from streamer.window.metadata import decode_meta, spelling_of
from streamer.window.run import Run

TOGETHER: Final = 1_000
"""How many batches are made at a time."""

Place = tuple[int, ...]


class Told(Mapping[str, Any]):
    """The metadata of the first message of a session: most mappings ask for little of it."""

    __slots__ = ("own", "start", "end", "reason", "key")

    def __init__(
        self, own: Mapping[str, Any], start: int, end: int, reason: WindowReason, key: bytes | None
    ) -> None:
        """Take the message's own metadata, and what it is told; see `labels`."""
        self.own = own
        self.start = start
        self.end = end
        self.reason = reason
        self.key = key

    def __getitem__(self, name: str) -> Any:
        make = _MADE.get(name)
        if make is None or (name == KEY and self.key is None):
            return self.own[name]
        return make(self)

    def __contains__(self, name: object) -> bool:
        if name in _MADE:
            return name != KEY or self.key is not None or KEY in self.own
        return name in self.own

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        for name in _MADE:
            if name not in self.own and (name != KEY or self.key is not None):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


_MADE: Final[dict[str, Callable[[Told], Any]]] = {
    START: lambda told: format_rfc3339(told.start),
    END: lambda told: format_rfc3339(told.end),
    START_MS: lambda told: told.start // MILLISECOND,
    END_MS: lambda told: told.end // MILLISECOND,
    EMIT: lambda told: told.reason,
    # A session ends with the latest of its events.
    NEWEST: lambda told: format_rfc3339(told.end),
    KEY: lambda told: key_text(told.key or b""),
}


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
        some, lanes = self._sessions, self._lanes
        if lanes is None:
            return
        decoded = [(*decode_meta(meta), spelling_of(meta)) for meta in some.metas]
        starts, ends = some.starts.tolist(), some.ends.tolist()
        reasons: list[WindowReason] = ["final" if due else "flush" for due in self._due.tolist()]
        which, sizes = some.meta_ids.tolist(), some.counts.tolist()
        values = lanes.values(some.numbers, some.counts)
        for first in range(0, len(some), TOGETHER):
            part = slice(first, first + TOGETHER)
            text, groups = lanes.text, []
            for key, start, end, reason, payload, meta, size, row in zip(
                some.keys[part],
                starts[part],
                ends[part],
                reasons[part],
                some.payloads[part],
                which[part],
                sizes[part],
                values[part],
                strict=True,
            ):
                own, error, spelt = decoded[meta]
                told = Told(own, start, end, reason, (spelt or key) if self._keyed else None)
                message = Message(payload, told, error)
                groups.append(FoldedGroup(message, text, row.__getitem__, size))
            keys = some.keys[part] if self._keyed else [None] * len(groups)
            yield Run.of(groups, starts[part], ends[part], reasons[part], keys)

    def emissions(self) -> Iterator[Emission]:
        """Give the batches one by one."""
        return chain.from_iterable(run.singly() for run in self.runs())
