"""The rules by which a message gets its row of a table.

Without a history, it is the newest row that came before the message, whatever their times are
(ksqlDB's and Kafka Streams' stream-table join). With a history, it is the row that is valid at the
message's event time (versioned tables, KIP-889 and KIP-914). A message whose time is before the
history gets the newest row if that is old enough, and else none.

With a history and an `allowed_lateness` (KIP-923), or a clock that waits for both inputs, a message
waits until the clock has passed its time by `allowed_lateness`. One that comes later than that is
joined at once: no message is late, and no row is.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streamer.window.contract import WindowReason
from streamer.window.keyed.message_rows import (
    LoadedPack,
    MessageRow,
    Segment,
    iterate_in_order,
)
from streamer.window.keyed.state import FOREVER, NEVER
from streamer.window.keyed.table_changes import TableChange, TableChanges, is_null_payload
from streamer.window.keyed.table_join_output import JoinedMessage
from streamer.window.keyed.table_rows import RowVersion, find_version, insert_version
from streamer.window.settings.window_types import EventTimeSettings, TableJoin

WaitingRow = tuple[int, int, LoadedPack, int, bool]
"""A message that waits: event time, arrival number, pack, row, and whether its time was before the
history when it came."""

Versions = Sequence[RowVersion]


@dataclass(slots=True)
class KeyMessages:
    """The messages of a key in one micro-batch.

    Attributes:
        incoming: those that came in with it.
        waiting: those that have waited for long enough.
    """

    incoming: list[Segment] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)


class DueMessages(NamedTuple):
    """The messages that wait no longer at the end of a micro-batch.

    Attributes:
        until: their last event time, ns.
        is_ended: whether it is all of them, since the input has ended.
        idle_before: those with a smaller arrival number have waited for `idle_timeout`.
    """

    until: int
    is_ended: bool
    idle_before: int


class TableJoinRules:
    """The rules of one join.

    Attributes:
        waits: whether messages wait for rows of their time.
        history: how long replaced rows are kept, ns; None for not at all.
    """

    def __init__(self, kind: TableJoin, time: EventTimeSettings) -> None:
        """Take the settings."""
        self._kind = kind
        self.history = kind.history
        # The clock of both inputs has reached a time when rows of the same time may still come.
        self._margin = time.allowed_lateness + time.waits_for_sources
        self.waits = kind.history is not None and self._margin > 0

    def due_until(self, clock: int) -> int:
        """Return the last event time of messages that wait no longer, ns."""
        if not self.waits:
            return FOREVER
        return NEVER if clock == NEVER else clock - self._margin

    def due_clock(self, time: int) -> int:
        """Return the clock at which a message that waits is joined, ns."""
        return min(time + self._margin, FOREVER)

    def cutoff(self, clock: int) -> int | None:
        """Return the time before which no message looks for a version, ns; None for no time."""
        return None if self.history is None or clock == NEVER else clock - self.history

    def is_due_at_once(self, time: int, watermark: int) -> bool:
        """Return whether a message is joined when it comes.

        Args:
            time: its event time, ns.
            watermark: the watermark before it, ns.
        """
        return not self.waits or time <= self.due_until(watermark)

    def is_before_history(self, time: int, watermark: int) -> bool:
        """Return whether the versions of a message's time may have been removed.

        Args:
            time: its event time, ns.
            watermark: the watermark before it, ns.
        """
        cutoff = self.cutoff(watermark)
        return cutoff is not None and time < cutoff

    def find_row(self, versions: Versions, time: int, is_before_history: bool) -> RowVersion | None:
        """Return the row that a message is joined with; None without one.

        Args:
            versions: of the row of its key, by time.
            time: its event time, ns.
            is_before_history: see the function of this name.
        """
        if not versions:
            return None
        row: RowVersion | None = versions[-1]
        if self.history is not None and versions[-1].time > time:
            row = None if is_before_history else find_version(versions, time)
        return None if row is None or row.payload is None else row

    def change(self, versions: Versions, new: RowVersion) -> Versions:
        """Return the versions of a row after a change."""
        if self.history is not None:
            return insert_version(versions, new)
        return () if new.payload is None else (new,)

    def is_emitted(self, joined: JoinedMessage) -> bool:
        """Return whether a message is emitted: one without a value never is."""
        if joined.is_null:
            return False
        return joined.version is not None or self._kind.type == "left"

    def join(
        self,
        key: bytes,
        messages: KeyMessages,
        versions: Versions,
        changes: TableChanges,
        due: DueMessages,
    ) -> tuple[Iterable[JoinedMessage], Versions]:
        """Join the messages of a key in one micro-batch, and change the table's row.

        Args:
            key: the key.
            messages: its messages.
            versions: of the row of the key, before the micro-batch.
            changes: of all rows.
            due: which messages wait no longer.

        Returns:
            The joined messages, in the order in which they were joined; and the versions
            after the micro-batch.
        """
        key_join = _KeyJoin(self, key, versions, messages.waiting)
        changed = iter(changes.of_key(key))
        change = next(changed, None)
        for message in iterate_in_order(messages.incoming) if messages.incoming else ():
            while change is not None and change.arrival < message[0]:
                key_join.apply(change)
                change = next(changed, None)
            key_join.take(message)
        while change is not None:
            key_join.apply(change)
            change = next(changed, None)
        key_join.release(due.until, "final")
        key_join.release_idle(due.idle_before)
        if due.is_ended:
            key_join.release(FOREVER, "flush")
        return key_join.joined, key_join.versions


class _KeyJoin:
    """The messages of one key and the changes of its row, in order of arrival.

    Attributes:
        joined: the messages that have been joined so far.
        versions: of the row of the key.
    """

    def __init__(
        self, rules: TableJoinRules, key: bytes, versions: Versions, waiting: list[WaitingRow]
    ) -> None:
        self._rules = rules
        self._key = key
        self.versions = versions
        self._waiting = sorted(waiting, key=_time_and_arrival)
        self.joined: list[JoinedMessage] = []

    def take(self, message: MessageRow) -> None:
        """Take a message that comes in: join it, or let it wait."""
        arrival, time, watermark, loaded, row = message
        is_before_history = self._rules.is_before_history(time, watermark)
        one = time, arrival, loaded, row, is_before_history
        if is_null_payload(loaded.payloads[row]):
            self._join(one, "event", is_null=True)
        elif self._rules.is_due_at_once(time, watermark):
            self._join(one, "event")
        else:
            insort(self._waiting, one, key=_time_and_arrival)

    def apply(self, change: TableChange) -> None:
        """Change the row, after the messages that waited no longer when the change came."""
        if self._rules.waits:
            self.release(self._rules.due_until(change.watermark), "final")
        self.versions = self._rules.change(self.versions, change.version)

    def release(self, until: int, reason: WindowReason) -> None:
        """Join the messages that wait, up to an event time, ns."""
        count = 0
        while count < len(self._waiting) and self._waiting[count][0] <= until:
            self._join(self._waiting[count], reason)
            count += 1
        del self._waiting[:count]

    def release_idle(self, before: int) -> None:
        """Join the messages that wait and have an arrival number below one."""
        idle = [one for one in self._waiting if one[1] < before]
        if idle:
            self._waiting = [one for one in self._waiting if one[1] >= before]
        for one in idle:
            self._join(one, "idle")

    def _join(self, message: WaitingRow, reason: WindowReason, is_null: bool = False) -> None:
        time, arrival, loaded, row, is_before_history = message
        version = self._rules.find_row(self.versions, time, is_before_history)
        one = JoinedMessage(time, arrival, self._key, loaded, row, version, reason, is_null)
        self.joined.append(one)


def _time_and_arrival(message: WaitingRow) -> tuple[int, int]:
    return message[:2]
