"""One micro-batch of the sessions that are kept as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from streamer.window.event import EventWindow
from streamer.window.ints import Ints
from streamer.window.keyed.columns.blocks import Blocks
from streamer.window.keyed.columns.came import Arrival, Came, Messages, Numbered
from streamer.window.keyed.columns.ended import Ended
from streamer.window.keyed.columns.lanes import Lanes, Segments, lanes_of
from streamer.window.keyed.columns.near import FAR, segments_of
from streamer.window.keyed.columns.numbers import EXACT, joined
from streamer.window.keyed.columns.opened import Opened, all_of, picked
from streamer.window.kinds import Session
from streamer.window.store import Store

Known = Callable[[Iterable[bytes]], Iterable[bytes]]
"""Says which of some keys are known to those who decide key by key."""


class Left(NamedTuple):
    """What is left to be decided key by key.

    Attributes:
        arrivals: messages.
        sessions: sessions of their keys, and others that cannot go on as columns.
        lanes: the parts of their mapping; None when there are no sessions.
    """

    arrivals: Sequence[Arrival]
    sessions: Opened
    lanes: Lanes | None


def lanes_for(window: EventWindow, text: str | None) -> Lanes | None:
    """Return how the sessions that begin now are kept as columns; None when they are not.

    Args:
        window: the settings.
        text: the mapping that windows are folded for; None to keep them whole.
    """
    kind, time = window.kind, window.time
    if text is None or not isinstance(kind, Session) or kind.max_duration is not None:
        return None
    if time.emit != "final" or time.clock_scope != "stream" or time.idle_timeout is not None:
        return None
    if max(kind.gap, time.allowed_lateness) >= FAR:
        return None
    return lanes_of(text)


class SessionColumns:
    """The sessions of a shard in one micro-batch.

    Attributes:
        taken: how many messages were put into sessions.
        opened: how many more sessions are open than before.
        released: how many messages were given back.
    """

    def __init__(self, window: EventWindow, store: Store, text: str | None, known: bool) -> None:
        """Prepare.

        Args:
            window: the settings.
            store: the shard's state.
            text: the mapping that windows are folded for from now on; None to keep them whole.
            known: whether the store has sessions as columns.
        """
        self.lanes = lanes_for(window, text)
        self.blocks = Blocks(store, known)
        self._window = window
        self._gap = window.kind.gap if isinstance(window.kind, Session) else 0
        self._lateness = window.time.allowed_lateness
        self.taken = self.opened = self.released = 0

    @property
    def next_due(self) -> int | None:
        """The least clock that closes a session; None without any."""
        least = self.blocks.least_end
        return None if least is None else least + self._wait

    @property
    def _wait(self) -> int:
        """How long after its end a session closes, ns."""
        return self._gap + self._lateness + 1

    def leave(self) -> Left | None:
        """Return all sessions if these cannot go on as columns; they are no longer here."""
        text = self.blocks.text
        if text is None or not len(self.blocks) or (self.lanes and self.lanes.text == text):
            return None
        lanes = lanes_of(text)
        assert lanes is not None
        numbers = self.blocks.all()
        sessions = self.blocks.take_out(numbers, lanes.columns)
        self.blocks.put_back(Opened.none(lanes.columns), numbers, text, lanes.columns)
        return Left((), sessions, lanes)

    def step(
        self, arrivals: Sequence[Arrival], known: Known, clock: int, active: int, flush: bool
    ) -> tuple[Left, Ended]:
        """Put messages into sessions, and close what is due.

        Args:
            arrivals: the packs that came in, in order.
            known: says which keys are decided one by one.
            clock: the one that closes windows.
            active: the running time.
            flush: close all, since the input has ended.

        Returns:
            What must be decided key by key, and what has ended.
        """
        lanes = self.lanes
        if lanes is None:
            none = Opened.none(0)
            return Left(arrivals, none, None), Ended(none, np.empty(0, np.bool_), None, False)
        came = Came(arrivals, lanes, self._lateness)
        keys = list(came.number)
        came.leave(known(keys))
        blocks = self.blocks
        numbers = blocks.all() if flush else blocks.touched(keys, clock - self._wait)
        before = blocks.take_out(numbers, lanes.columns)
        codes = _codes_of(before.keys, came.number)
        odd = np.zeros(len(came.number), np.bool_)
        odd[: len(came.odd)] = came.odd
        leaving, staying = before.parted(odd[codes])
        sessions = self._joined(
            staying, codes[~odd[codes]], came.plain(), list(came.number), active
        )
        due = sessions.ends <= clock - self._wait
        ended, left = sessions.parted(due | flush)
        self.opened = len(left) - len(staying)
        self.released = int(ended.counts.sum())
        rounded = lanes.rounded(left.numbers, EXACT)
        if rounded is not None:
            more, left = left.parted(rounded)
            leaving = all_of([leaving, more])
        blocks.put_back(left, numbers, lanes.text, lanes.columns)
        gone = Ended(ended, due[due | flush], lanes, self._window.keyed)
        return Left(came.left(), leaving, lanes), gone

    def _joined(
        self, before: Opened, codes: Ints, messages: Messages, keys: list[bytes], active: int
    ) -> Opened:
        """Return the sessions that there are when messages have come."""
        lanes = self.lanes
        assert lanes is not None
        self.taken = came = len(messages.codes)
        if not came:
            return before
        of = np.concatenate((codes, messages.codes))
        starts = np.concatenate((before.starts, messages.times))
        ends = np.concatenate((before.ends, messages.times))
        arrivals = np.concatenate((before.firsts, messages.arrivals))
        found = segments_of(of, starts, ends, arrivals, self._gap)
        order, bounds = found.order, found.bounds
        first, firsts = _first_of(found)
        metas = before.metas + messages.metas
        meta_ids = np.concatenate((before.meta_ids, messages.meta_ids + len(before.metas)))
        counts = np.concatenate((before.counts, np.ones(came, np.int64)))
        running = np.concatenate((before.active, np.full(came, active)))
        both = zip(before.numbers, messages.numbers, strict=True)
        return Opened(
            picked(keys, of[order[bounds]]),
            starts[order[bounds]],
            np.maximum.reduceat(ends[order], bounds),
            firsts,
            np.add.reduceat(counts[order], bounds),
            np.maximum.reduceat(running[order], bounds),
            picked(before.payloads + messages.payloads, first),
            metas,
            meta_ids[first],
            lanes.reduced([joined(columns) for columns in both], found),
        )


def _codes_of(keys: list[bytes], number: Numbered) -> Ints:
    return np.array(list(map(number.__getitem__, keys)), np.int64)


def _first_of(found: Segments) -> tuple[Ints, Ints]:
    """Return for each session what arrived first of it, and its arrival number."""
    arrivals = found.arrivals[found.order]
    firsts = np.minimum.reduceat(arrivals, found.bounds)
    return found.order[arrivals == firsts[found.number]], firsts
