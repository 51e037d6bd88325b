"""The kinds of windows beside `system_window`: the settings of each, as the kernel takes them.

Times and durations are ns. The buffers of these names say which settings are refused; build one
only of settings that they find nothing wrong with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from streamer.core.durations import DAY, MINUTE, format_duration

Clock = Literal["stream", "system"]
ClockScope = Literal["stream", "key", "partition", "input"]
Emit = Literal["final", "changes", "each", "forward"]
EmitAlso = Literal["on_time", "close", "retractions"]
Order = Literal["arrival", "event_time"]
EndOfInput = Literal["flush", "keep"]
CountEndOfInput = Literal["drop", "flush", "keep"]
CountAlign = Literal["end", "start"]
DurationOrigin = Literal["epoch", "start"]
SlidingMode = Literal["event", "forward", "kafka"]
ClosedBounds = Literal["both", "left", "right", "neither"]
Fill = Literal["none", "previous", "linear"]
JoinType = Literal["inner", "left", "outer"]
TableJoinType = Literal["inner", "left"]

KEY_RETENTION: Final = 7 * DAY
SOURCE_IDLE_TIMEOUT: Final = MINUTE


@dataclass(frozen=True, slots=True)
class EventTimeSettings:
    """Settings that all kinds by event time have in common.

    Attributes:
        clock: what closes windows: the largest event time seen, or the micro-batch's time.
        clock_scope: whether all share one clock, or each key has its own; a shared one is the
            largest event time of all, or that of the partition or input that is the furthest back.
        key_retention: ns of system time that a key's own clock is kept after its last event.
        allowed_lateness: ns that a window stays open after its end.
        max_ahead: ns that an event may be ahead of the system clock; None for any.
        idle_timeout: ns of system time without an event after which a window closes; None for
            never.
        emit: when a window's content goes on.
        retention: ns that emitted results are kept for queries; None for not at all.
        end_of_input: what becomes of open windows when a bounded input has ended.
        emit_also: what is emitted besides: a window when the clock passes its end, or when it
            closes; and what takes back a result that no longer holds.
        order: of a window's messages; those of one event time are in order of arrival.
        source_idle_timeout: ns of running time without a message after which the clock does not
            wait for a partition or input; 0 for never.
    """

    clock: Clock = "stream"
    clock_scope: ClockScope = "stream"
    key_retention: int = KEY_RETENTION
    allowed_lateness: int = 0
    max_ahead: int | None = None
    idle_timeout: int | None = None
    emit: Emit = "final"
    retention: int | None = None
    end_of_input: EndOfInput = "flush"
    emit_also: frozenset[EmitAlso] = frozenset()
    order: Order = "arrival"
    source_idle_timeout: int = SOURCE_IDLE_TIMEOUT

    @property
    def retracts(self) -> bool:
        """Whether emitted results that no longer hold are taken back."""
        return "retractions" in self.emit_also

    @property
    def waits_for_sources(self) -> bool:
        """Whether the clock waits for the partition or input that is the furthest back."""
        return self.clock == "stream" and self.clock_scope in ("partition", "input")


@dataclass(frozen=True, slots=True)
class EmptyWindows:
    """Settings of windows that are emitted though no message is in them.

    Attributes:
        duration: for how long after the window of its last message a silent key has windows.
        fill: `none`: nothing stands in; `previous`: the last message before the window; `linear`:
            that message with numbers between its own and those of the next one.
        seen: whether every key that had a message has them, or only those of `keys`.
        keys: keys that have them from the first message of the stream on, as JSON.
    """

    duration: int
    fill: Fill = "none"
    seen: bool = True
    keys: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows [start, end) on a grid: tumbling ones, and hopping ones where `every` < `size`.

    Attributes:
        size: of a window; with a timezone whole days, counted as local dates.
        every: from one start to the next, <= size; with a timezone whole days.
        offset: moves all starts, may be negative, |offset| < every; with a timezone it is
            wall-clock time.
        timezone: the IANA name that days are counted in; None for the grid of the Unix epoch.
        empty: which windows without messages are emitted; None for none.
    """

    size: int
    every: int
    offset: int = 0
    timezone: str | None = None
    empty: EmptyWindows | None = None

    @property
    def size_days(self) -> int:
        """The size in days, for windows with a timezone."""
        return self.size // DAY

    @property
    def every_days(self) -> int:
        """The step in days, for windows with a timezone."""
        return self.every // DAY

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        grid = ",".join(format_duration(ns) for ns in (self.size, self.every, self.offset))
        return f"grid({grid}{f',{self.timezone}' if self.timezone else ''})"


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows that lie where the events are, both bounds inclusive.

    Attributes:
        size: of a window; whole milliseconds with mode `kafka`.
        mode: `event`: every event triggers an output of all in [t - size, t]; `forward`: a window
            [t, t + size] for every distinct t; `kafka`: left and right windows in milliseconds.
        delay: with mode `event`, a window ends this much later, and holds what comes until then.
        waits: with mode `event`, whether a window waits until the clock reaches its end; one with
            a delay does.
        conditional: with mode `event`, whether only events for which a condition holds have a
            window.
        emit_every: with mode `event`, how much later than the event of the last window, or than
            the first one, the next event with a window is at least; None for any.
        closed: with mode `event`, the bounds that belong to a window.
    """

    size: int
    mode: SlidingMode
    delay: int = 0
    waits: bool = False
    conditional: bool = False
    emit_every: int | None = None
    closed: ClosedBounds = "both"

    @property
    def is_open_left(self) -> bool:
        """Whether a message at the start is in no window of its own."""
        return self.closed in ("right", "neither")

    @property
    def is_open_right(self) -> bool:
        """Whether a message at the end is in no window of its own."""
        return self.closed in ("left", "neither")

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        parts = [format_duration(self.size), self.mode]
        if self.delay:
            parts.append(f"delay {format_duration(self.delay)}")
        elif self.waits:
            parts.append("waits")
        return f"sliding({','.join(parts)})"


@dataclass(frozen=True, slots=True)
class Session:
    """Windows of activity, ended by a time without events, both bounds inclusive.

    Attributes:
        gap: an event at most this far from a session joins it.
        max_duration: a session is cut at the first multiple of it, from the Unix epoch, that is
            later than its start by more than it; None for no cut.
        by_message: whether messages may bring a gap of their own, in the place of `gap`.
        expected: keys, as JSON, of which a session without messages is emitted where none comes
            within the gap of the first message of the stream.
        max_count: number of messages with which a session closes at once; None for any number.
        max_duration_origin: `epoch` for cuts at multiples of `max_duration`; `start` for a cut
            `max_duration` after the start, which may be shorter than the gap.
    """

    gap: int
    max_duration: int | None = None
    by_message: bool = False
    expected: tuple[bytes, ...] = ()
    max_count: int | None = None
    max_duration_origin: DurationOrigin = "epoch"

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        parts = [format_duration(self.gap)]
        if self.max_duration is not None:
            origin = " from start" if self.max_duration_origin == "start" else ""
            parts.append(format_duration(self.max_duration) + origin)
        if self.max_count is not None:
            parts.append(f"at most {self.max_count}")
        if self.by_message:
            parts.append("by message")
        return f"session({','.join(parts)})"


@dataclass(frozen=True, slots=True)
class Count:
    """Windows of a number of messages, without any time.

    Attributes:
        count: messages in a window, at most.
        every: messages from one window to the next; count for tumbling. Windows that are aligned
            at their starts leave out no message: 1 <= every <= count.
        min_count: the fewest messages of a key for a window; 0 for count.
        align: `end`: a window ends after each `every` messages; `start`: one begins before each
            `every` messages, the first one with the first message.
        end_of_input: what becomes of windows that have begun when a bounded input has ended.
        conditional: whether a window ends with a message for which a condition holds only, `every`
            messages after the last one at least.
    """

    count: int
    every: int
    min_count: int = 0
    align: CountAlign = "end"
    end_of_input: CountEndOfInput = "drop"
    conditional: bool = False

    @property
    def least_count(self) -> int:
        """The fewest messages of a key for a window."""
        return self.min_count or self.count

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        parts = [str(self.count), str(self.every)]
        if self.least_count != self.count:
            parts.append(f"from {self.least_count}")
        if self.align == "start" and self.every != self.count:
            parts.append("by starts")
        if self.conditional:
            parts.append("on condition")
        return f"count({','.join(parts)})"

    def window_after(self, total: int) -> int:
        """Return the number of the message, from 1, that completes the next window.

        Args:
            total: how many messages of the key there were so far.
        """
        phase = self.count if self.align == "start" else 0
        least = max(total + 1, self.least_count)
        return least + (phase - least) % self.every

    def window_before(self, total: int) -> int:
        """Return the number of the message that completed the latest window; 0 without one."""
        phase = self.count if self.align == "start" else 0
        newest = total - (total - phase) % self.every
        return newest if newest >= self.least_count else 0


@dataclass(frozen=True, slots=True)
class State:
    """Windows from a message for which a condition holds to one for which another one holds.

    Attributes:
        single: whether the message that begins the next window ends the last one, of which it is
            not.
        end_of_input: what becomes of windows that have begun when a bounded input has ended.
    """

    single: bool = False
    end_of_input: CountEndOfInput = "drop"

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        return "state(single)" if self.single else "state"


@dataclass(frozen=True, slots=True)
class Global:
    """One window for each key, which never ends.

    Attributes:
        latest_by: a mapping that gives the id of a message: of each id the window holds the latest
            message only. Empty for a window that aggregates, and holds no message.
        delete_when: a query; a message for which it is true takes its id out. Empty for none.
    """

    latest_by: str = ""
    delete_when: str = ""

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        return "global(latest)" if self.latest_by else "global"


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of events of two inputs, of the same key and close in time.

    An event of the right side at r matches one of the left side at l when
    l - before <= r <= l + after.

    Attributes:
        left: the label of the input whose messages are the left side.
        right: the label of the right side's input.
        before: how much earlier the right side may be; may be negative, -before <= after.
        after: how much later the right side may be; may be negative.
        type: which unmatched events are emitted too: none, the left side's, or both sides'.
    """

    left: str
    right: str
    before: int
    after: int
    type: JoinType = "inner"

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        bounds = f"{format_duration(self.before)},{format_duration(self.after)}"
        return f"join({self.left},{self.right},{bounds},{self.type})"


@dataclass(frozen=True, slots=True)
class TableJoin:
    """Messages of a stream, each with the row that a table has for its key.

    Attributes:
        left: the label of the input whose messages are the stream.
        right: the label of the input whose messages are rows of the table.
        type: whether messages without a row are emitted: not with `inner`.
        history: for how long, by event time, a row that was replaced is kept for messages of its
            time, ns; None for the newest row alone, whatever the times are.
        table_ttl: ns of system time after which a row is removed that has not come anew; None for
            never.
        delete_when: a query; a row for which it is true removes the row of its key. Empty for none.
    """

    left: str
    right: str
    type: TableJoinType = "inner"
    history: int | None = None
    table_ttl: int | None = None
    delete_when: str = ""

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        return f"table_join({self.left},{self.right})"


@dataclass(frozen=True, slots=True)
class KeyedMessages:
    """No windows: each message goes on by itself, at once or in order of event times."""

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        return "keyed_state"


WindowType = (
    Tumbling | Sliding | Session | Count | State | Global | Join | TableJoin | KeyedMessages
)
"""The settings of any of the kinds."""
