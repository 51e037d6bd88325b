"""The running time at which the waiting messages of a join were taken, for its `idle_timeout`.

Messages have arrival numbers in the order of micro-batches, so that one entry for each micro-batch
says it for all of its messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, NamedTuple

from streamer.window.keyed.head import KeyedHead
from streamer.window.keyed.state import FOREVER, MIN_TIME_NS
from streamer.window.settings.int_codec import Ints

MAX_ENTRIES: Final = 1024
"""Most entries; beyond them, neighbours become one, whose messages become idle with its last."""


@dataclass(slots=True)
class _Entry:
    """The messages of one micro-batch.

    Attributes:
        first: their first arrival number.
        active: the running time at which they were taken, ns.
        low: the least of their event times, ns.
        high: the largest.
        expires: the clock at which the last of them leaves, ns.
    """

    first: int
    active: int
    low: int
    high: int
    expires: int


class IdleMessages(NamedTuple):
    """Messages that have become idle: those that arrived before others, in a range of times.

    Attributes:
        before: their arrival numbers are less than this.
        low: the least of their event times, ns.
        high: the largest.
    """

    before: int
    low: int
    high: int


class ArrivalTimes:
    """By micro-batch, when its messages were taken; kept in the head of a join's state."""

    def __init__(self, fields: list[list[int]]) -> None:
        """Take what `to_fields` returned."""
        self._entries = [_Entry(*entry) for entry in fields]

    def to_fields(self) -> list[list[int]]:
        """Return the entries as plain values, for the head of the state."""
        return [[one.first, one.active, one.low, one.high, one.expires] for one in self._entries]

    def add(self, first: int, active: int, times: Ints, expires: int) -> None:
        """Add the messages of a micro-batch, and join entries where there are too many.

        Args:
            first: no message of an earlier micro-batch has this arrival number or a larger one.
            active: the running time of the stream, ns.
            times: the event times of the messages, ns, at least one.
            expires: the clock at which the last of them leaves, ns.
        """
        self._entries.append(_Entry(first, active, int(times.min()), int(times.max()), expires))
        if len(self._entries) > MAX_ENTRIES:
            pairs = zip_longest(self._entries[::2], self._entries[1::2])
            self._entries = [one if two is None else _join(one, two) for one, two in pairs]

    def forget_expired(self, clock: int) -> None:
        """Forget the entries whose messages have all left by a clock, ns."""
        self._entries = [one for one in self._entries if one.expires > clock]

    def pop_idle(self, active: int, timeout: int, next_arrival: int) -> IdleMessages | None:
        """Remove the entries whose messages have become idle.

        Args:
            active: the running time of the stream, ns.
            timeout: the running time after which a message is idle, ns.
            next_arrival: the number of the next arrival.

        Returns:
            The messages; None if there are none.
        """
        count = 0
        while count < len(self._entries) and active - self._entries[count].active >= timeout:
            count += 1
        idle, self._entries = self._entries[:count], self._entries[count:]
        if not idle:
            return None
        before = self._entries[0].first if self._entries else next_arrival
        low, high = min(one.low for one in idle), max(one.high for one in idle)
        return IdleMessages(before, low, high)

    @property
    def oldest(self) -> int | None:
        """The running time at which the first of the messages were taken, ns; None without any."""
        return self._entries[0].active if self._entries else None


def _join(one: _Entry, two: _Entry) -> _Entry:
    """Return the entry of two neighbours' messages, none of which is idle too early by it."""
    low, high = min(one.low, two.low), max(one.high, two.high)
    return _Entry(one.first, two.active, low, high, max(one.expires, two.expires))


def open_arrival_times(head: KeyedHead) -> ArrivalTimes:
    """Return when the waiting messages of a join were taken: now, of those without an entry.

    Args:
        head: the head of the join's state; a config without `idle_timeout` keeps no entries.
    """
    fields = head.arrival_times
    if fields is None:
        old = [0, head.clocks.active, MIN_TIME_NS, FOREVER, FOREVER]
        fields = [old] if head.next_arrival else []
    return ArrivalTimes(fields)
