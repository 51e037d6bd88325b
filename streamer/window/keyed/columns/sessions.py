"""One micro-batch of the sessions that are kept as columns (the column path).

Keys whose messages or sessions need the general rules take the row path: `keyed.step` processes
them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

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
from streamer.window.state_store import StateStore

KnownKeysFunction = Callable[[Iterable[bytes]], Iterable[bytes]]
"""Returns those of some keys that have records, and so take the row path."""


class RowPathWork(NamedTuple):
    """Messages and sessions of keys that take the row path.

    Attributes:
        arrivals: packs of messages.
        sessions: open sessions of their keys, and others that cannot stay columns.
        aggregates: the aggregates of the sessions; None if there are no sessions.
    """

    arrivals: Sequence[UnpackedPack]
    sessions: OpenSessions
    aggregates: NumericAggregates | None


def numeric_aggregates_for(window: EventWindow, text: str | None) -> NumericAggregates | None:
    """Return the aggregates of new sessions that are kept as columns; None if none are.

    Args:
        window: the window's settings.
        text: the mapping that windows aggregate by; None to keep their messages.
    """
    kind, time = window.kind, window.time
    if text is None or not isinstance(kind, Session) or kind.max_duration is not None:
        return None
    if (
        kind.by_message
        or kind.max_count is not None
        or time.emit != "final"
        or time.emit_also
        or time.clock_scope == "key"
        or time.idle_timeout is not None
    ):
        return None
    if max(kind.gap, time.allowed_lateness) >= MAX_TIME_DISTANCE_NS:
        return None
    return numeric_aggregates_of(text)


class SessionColumns:
    """The column path of a shard in one micro-batch.

    Attributes:
        taken: how many messages were added to sessions.
        opened_count: how many more sessions are open than before.
        freed_count: how many messages were freed.
    """

    def __init__(
        self, window: EventWindow, store: StateStore, text: str | None, known: bool
    ) -> None:
        """Read the head of the session blocks.

        Args:
            window: the window's settings.
            store: the shard's state.
            text: the mapping that new windows aggregate by; None to keep their messages.
            known: whether the state has sessions as columns.
        """
        self.aggregates = numeric_aggregates_for(window, text)
        self.blocks = SessionBlocks(store, known)
        self._window = window
        self._gap = window.kind.gap if isinstance(window.kind, Session) else 0
        self._lateness = window.time.allowed_lateness
        self.taken = self.opened_count = self.freed_count = 0

    @property
    def next_due(self) -> int | None:
        """The least watermark that closes a session, ns; None without sessions."""
        least = self.blocks.earliest_end
        return None if least is None else least + self._close_delay

    @property
    def _close_delay(self) -> int:
        """The time after its end at which a session closes, ns."""
        return self._gap + self._lateness + 1

    def release_all(self) -> RowPathWork | None:
        """Remove and return all sessions if they are for another mapping; None to keep them."""
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
        """Merge messages into sessions, and close due sessions.

        Args:
            arrivals: the packs that came in, in order.
            known: returns the keys that have records.
            clock: the watermark, ns.
            active: the running time of the stream, ns.
            flush: whether to close all sessions, since the input has ended.

        Returns:
            The work of the row path, and the closed sessions.
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
        """Merge messages into open sessions; return all open sessions."""
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
    """Return by session the index of its first arrival, and the arrival number."""
    arrivals = groups.arrivals[groups.order]
    firsts = np.minimum.reduceat(arrivals, groups.bounds)
    return groups.order[arrivals == firsts[groups.number]], firsts
