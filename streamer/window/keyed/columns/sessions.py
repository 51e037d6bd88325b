"""One micro-batch of the sessions that are kept as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from streamer.window.contract.state_store import StateStore
from streamer.window.keyed.columns.closed_sessions import ClosedSessions
from streamer.window.keyed.columns.incoming import (
    IncomingColumns,
    IncomingMessages,
    KeyNumbering,
    UnpackedPack,
)
from streamer.window.keyed.columns.merge_sessions import MAX_TIME_DISTANCE_NS, group_sessions
from streamer.window.keyed.columns.numbers import MAX_EXACT_SUM, concat_numbers
from streamer.window.keyed.columns.numeric_aggregates import (
    NumericAggregates,
    SessionGroups,
    numeric_aggregates_of,
)
from streamer.window.keyed.columns.open_sessions import OpenSessions, concat_sessions, select_items
from streamer.window.keyed.columns.session_blocks import SessionBlocks
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.int_codec import Ints
from streamer.window.settings.window_types import Session

KnownKeysFunction = Callable[[Iterable[bytes]], Iterable[bytes]]
"""Says which of some keys are known to those who decide key by key."""


class RowPathWork(NamedTuple):
    """What is left to be decided key by key.

    Attributes:
        arrivals: messages.
        sessions: sessions of their keys, and others that cannot go on as columns.
        aggregates: the parts of their mapping; None when there are no sessions.
    """

    arrivals: Sequence[UnpackedPack]
    sessions: OpenSessions
    aggregates: NumericAggregates | None


def numeric_aggregates_for(window: EventWindow, text: str | None) -> NumericAggregates | None:
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
    if max(kind.gap, time.allowed_lateness) >= MAX_TIME_DISTANCE_NS:
        return None
    return numeric_aggregates_of(text)


class SessionColumns:
    """The sessions of a shard in one micro-batch.

    Attributes:
        taken: how many messages were put into sessions.
        opened_count: how many more sessions are open than before.
        freed_count: how many messages were given back.
    """

    def __init__(
        self, window: EventWindow, store: StateStore, text: str | None, known: bool
    ) -> None:
        """Prepare.

        Args:
            window: the settings.
            store: the shard's state.
            text: the mapping that windows are folded for from now on; None to keep them whole.
            known: whether the store has sessions as columns.
        """
        self.aggregates = numeric_aggregates_for(window, text)
        self.blocks = SessionBlocks(store, known)
        self._window = window
        self._gap = window.kind.gap if isinstance(window.kind, Session) else 0
        self._lateness = window.time.allowed_lateness
        self.taken = self.opened_count = self.freed_count = 0

    @property
    def next_due(self) -> int | None:
        """The least clock that closes a session; None without any."""
        least = self.blocks.earliest_end
        return None if least is None else least + self._close_delay

    @property
    def _close_delay(self) -> int:
        """How long after its end a session closes, ns."""
        return self._gap + self._lateness + 1

    def release_all(self) -> RowPathWork | None:
        """Return all sessions if these cannot go on as columns; they are no longer here."""
        text = self.blocks.text
        if (
            text is None
            or not len(self.blocks)
            or (self.aggregates and self.aggregates.text == text)
        ):
            return None
        aggregates = numeric_aggregates_of(text)
        assert aggregates is not None
        numbers = self.blocks.list_blocks()
        sessions = self.blocks.load(numbers, aggregates.columns)
        self.blocks.save(OpenSessions.empty(aggregates.columns), numbers, text, aggregates.columns)
        return RowPathWork((), sessions, aggregates)

    def step(
        self,
        arrivals: Sequence[UnpackedPack],
        known: KnownKeysFunction,
        clock: int,
        active: int,
        flush: bool,
    ) -> tuple[RowPathWork, ClosedSessions]:
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
        aggregates = self.aggregates
        if aggregates is None:
            none = OpenSessions.empty(0)
            return RowPathWork(arrivals, none, None), ClosedSessions(
                none, np.empty(0, np.bool_), None, False
            )
        incoming = IncomingMessages(arrivals, aggregates, self._lateness)
        keys = list(incoming.key_numbers)
        incoming.require_row_path(known(keys))
        blocks = self.blocks
        numbers = (
            blocks.list_blocks() if flush else blocks.select_blocks(keys, clock - self._close_delay)
        )
        before = blocks.load(numbers, aggregates.columns)
        codes = _key_codes_of(before.keys, incoming.key_numbers)
        odd = np.zeros(len(incoming.key_numbers), np.bool_)
        odd[: len(incoming.needs_row_path)] = incoming.needs_row_path
        leaving, staying = before.split(odd[codes])
        sessions = self._merge_incoming(
            staying,
            codes[~odd[codes]],
            incoming.select_column_path(),
            list(incoming.key_numbers),
            active,
        )
        due = sessions.ends <= clock - self._close_delay
        ended, left = sessions.split(due | flush)
        self.opened_count = len(left) - len(staying)
        self.freed_count = int(ended.counts.sum())
        rounded = aggregates.find_inexact(left.numbers, MAX_EXACT_SUM)
        if rounded is not None:
            more, left = left.split(rounded)
            leaving = concat_sessions([leaving, more])
        blocks.save(left, numbers, aggregates.text, aggregates.columns)
        gone = ClosedSessions(ended, due[due | flush], aggregates, self._window.keyed)
        return RowPathWork(incoming.select_row_path(), leaving, aggregates), gone

    def _merge_incoming(
        self,
        before: OpenSessions,
        codes: Ints,
        messages: IncomingColumns,
        keys: list[bytes],
        active: int,
    ) -> OpenSessions:
        """Return the sessions that there are when messages have come."""
        aggregates = self.aggregates
        assert aggregates is not None
        self.taken = message_count = len(messages.codes)
        if not message_count:
            return before
        of = np.concatenate((codes, messages.codes))
        starts = np.concatenate((before.starts, messages.times))
        ends = np.concatenate((before.ends, messages.times))
        arrivals = np.concatenate((before.firsts, messages.arrivals))
        groups = group_sessions(of, starts, ends, arrivals, self._gap)
        order, bounds = groups.order, groups.bounds
        first, firsts = _find_first_arrivals(groups)
        metas = before.metas + messages.metas
        meta_ids = np.concatenate((before.meta_ids, messages.meta_ids + len(before.metas)))
        counts = np.concatenate((before.counts, np.ones(message_count, np.int64)))
        running = np.concatenate((before.active, np.full(message_count, active)))
        both = zip(before.numbers, messages.numbers, strict=True)
        return OpenSessions(
            select_items(keys, of[order[bounds]]),
            starts[order[bounds]],
            np.maximum.reduceat(ends[order], bounds),
            firsts,
            np.add.reduceat(counts[order], bounds),
            np.maximum.reduceat(running[order], bounds),
            select_items(before.payloads + messages.payloads, first),
            metas,
            meta_ids[first],
            aggregates.reduce_sessions([concat_numbers(columns) for columns in both], groups),
        )


def _key_codes_of(keys: list[bytes], number: KeyNumbering) -> Ints:
    return np.array(list(map(number.__getitem__, keys)), np.int64)


def _find_first_arrivals(groups: SessionGroups) -> tuple[Ints, Ints]:
    """Return for each session what arrived first of it, and its arrival number."""
    arrivals = groups.arrivals[groups.order]
    firsts = np.minimum.reduceat(arrivals, groups.bounds)
    return groups.order[arrivals == firsts[groups.number]], firsts
