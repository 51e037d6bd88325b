"""Windows that follow event times: their settings as a whole, and how a shard goes about them.

Where all keys share one clock and a window is emitted once, at its close, a shard need not know
its keys: whole panes close at a time (`panes`). All else is decided key by key (`keys`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from streamer.core.durations import MILLISECOND, SECOND, format_duration
from streamer.window.settings.day_grid import DayGrid
from streamer.window.settings.describe import (
    COUNT_END_TEXTS,
    END_OF_INPUT_TEXTS,
    TABLE_END_TEXTS,
    describe_bounds,
    describe_closing,
    describe_emissions,
    describe_type,
    emits_at_end,
    headline_of,
    spacing_of,
)
from streamer.window.settings.grid import YEAR_ONE, Grid, Slices
from streamer.window.settings.local_days import LocalDays
from streamer.window.settings.window_types import (
    Count,
    EventTimeSettings,
    Global,
    Join,
    KeyedMessages,
    Session,
    Sliding,
    State,
    TableJoin,
    Tumbling,
    WindowType,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIN_SLICE_NS: Final = SECOND
_MAX_SLICE_NS: Final = 2**63 - 1

WINDOW_KEY_ID: Final = 1
"""The key id of a window's own keys, which are values: a key_mapping said otherwise goes on with
the windows that are open."""


@dataclass(frozen=True)
class EventWindow:
    """The settings of an event-time buffer (`Window`); build one only of valid ones.

    Attributes:
        kind: which windows there are.
        time: the settings that all kinds share.
        keyed: whether a `key_mapping` gives each message a key.
    """

    kind: WindowType
    time: EventTimeSettings = EventTimeSettings()
    keyed: bool = False

    spreads_groups: ClassVar[bool] = False
    drops_expired: ClassVar[bool] = False
    expire_delay: ClassVar[None] = None
    implicit_size: ClassVar[None] = None

    @property
    def strategy(self) -> Literal["panes", "keys"]:
        """Way of shards with windows: whole panes, or key by key."""
        time = self.time
        shared = time.clock_scope != "key" and time.idle_timeout is None
        once = time.emit == "final" and not time.emit_also
        if isinstance(self.kind, Tumbling) and shared and once:
            # Windows without messages are those of a key.
            return "panes" if self.kind.empty is None else "keys"
        return "keys"

    @property
    def count_based(self) -> bool:
        """Whether windows hold a number of messages, and have no times."""
        return isinstance(self.kind, Count | State)

    @property
    def unbounded(self) -> bool:
        """Whether windows never end, and so have no bounds."""
        return isinstance(self.kind, Global)

    @property
    def holds_nothing(self) -> bool:
        """Whether windows aggregate every message at once, and hold none."""
        return isinstance(self.kind, Global) and not self.kind.latest_by

    @property
    def passes_messages(self) -> bool:
        """Whether there are no windows, and each message goes on at once."""
        return isinstance(self.kind, KeyedMessages)

    @property
    def join(self) -> Join | TableJoin | None:
        """Settings of a join of two inputs; None for windows of one stream."""
        return self.kind if isinstance(self.kind, Join | TableJoin) else None

    @property
    def listed_keys(self) -> tuple[bytes, ...]:
        """The keys whose windows are emitted though no message ever came, as JSON."""
        if isinstance(self.kind, Tumbling) and self.kind.empty is not None:
            return self.kind.empty.keys
        return self.kind.expected if isinstance(self.kind, Session) else ()

    @property
    def has_sessions(self) -> bool:
        """Whether the bounds of windows move while they are open."""
        return isinstance(self.kind, Session)

    @property
    def uses_event_time(self) -> bool:
        """Whether the largest event time closes windows, rather than the batch time."""
        return self.time.clock == "stream"

    @property
    def allowed_lateness(self) -> int:
        """Nanoseconds for which windows wait for late messages."""
        return self.time.allowed_lateness

    @property
    def max_ahead(self) -> int | None:
        """Nanoseconds that a message may be ahead of the batch time; None for any."""
        return self.time.max_ahead

    @property
    def end_of_input(self) -> str:
        """Fate of open windows when a bounded input has ended; `flush` where none stay open."""
        if isinstance(self.kind, Count | State):
            return "keep" if self.kind.end_of_input == "keep" else "flush"
        return self.time.end_of_input

    @property
    def retention(self) -> int | None:
        """Nanoseconds that results are kept for queries; None for not at all."""
        return self.time.retention

    @property
    def sorts_by_time(self) -> bool:
        """Whether a window's messages come in order of their event times."""
        return self.time.order == "event_time" and not self.count_based and self.join is None

    @property
    def aggregation_obstacle(self) -> str | None:
        """Reason why windows of this kind keep messages, whatever the mapping; None for none."""
        if isinstance(self.kind, KeyedMessages):
            return "keyed_state gives messages on as they come, and keeps none"
        if isinstance(self.kind, Global) and self.kind.latest_by:
            return "a later one replaces it"
        if isinstance(self.kind, State):
            return "a state window that does not end drops its messages, and so keeps them"
        if isinstance(self.kind, Sliding | Count):
            name = "sliding" if isinstance(self.kind, Sliding) else "count"
            return f"messages of {name} windows are in several windows, or leave them again"
        if not isinstance(self.kind, Tumbling | Session | Global):
            return "joins pair messages one by one"
        if self.time.emit == "forward":
            return "emit: forward gives messages on as they come, and keeps none"
        if self.sorts_by_time:
            return "order: event_time sorts a window's messages when it closes, and so keeps them"
        return None

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        # How a shared clock goes on is no matter of what is kept.
        scope = "key" if self.time.clock_scope == "key" else "stream"
        scope = f",{self.time.clock},{scope}"
        return f"{self.kind.fingerprint}{scope},{self.strategy}{',keyed' if self.keyed else ''}"

    @cached_property
    def days(self) -> LocalDays | None:
        """The local days that windows of a time zone are counted in."""
        if isinstance(self.kind, Tumbling) and self.kind.timezone is not None:
            return LocalDays(self.kind.timezone, self.kind.offset)
        return None

    @cached_property
    def grid(self) -> Grid | DayGrid:
        """The grid of windows [start, end), whose ends are named by their last instant."""
        kind = self.kind
        assert isinstance(kind, Tumbling)
        if self.days is not None:
            return DayGrid(self.days, kind.every_days, kind.size_days)
        return Grid(kind.every, kind.size, (kind.offset + kind.size - 1 - YEAR_ONE) % kind.every)

    @property
    def panes(self) -> Grid | DayGrid | Slices:
        """The stretches of time by which stage 1 packs messages."""
        return self.grid if self.strategy == "panes" else self.slices

    @property
    def epoch(self) -> int:
        """About how far apart the panes of windows on a grid are, ns."""
        assert isinstance(self.kind, Tumbling)
        return self.kind.every

    def due_time(self, end: int) -> int:
        """Return the clock at which a window closes, whose last instant is `end`."""
        return end + 1 + self.time.allowed_lateness

    def closed_until(self, clock: int) -> int:
        """Return the newest end that a clock has closed, by its last instant."""
        return self.grid.end_at_or_before(clock - 1 - self.time.allowed_lateness)

    def next_due_time(self, t: int) -> int | None:
        """Return the first clock after a time at which a window closes; None without a grid."""
        if not isinstance(self.kind, Tumbling):
            return None
        return self.due_time(self.grid.end_at_or_after(self.closed_until(t) + 1))

    def first_due_time(self, pane: int) -> int:
        """Return the clock at which the first window of a pane closes."""
        return self.due_time(self.grid.end_at_or_after(pane))

    def due_count(self, t: int) -> int:
        """Return a number that grows with time, ns; it stands for the windows due by then."""
        return t // MILLISECOND

    @cached_property
    def slices(self) -> Slices:
        """The panes of windows that are decided key by key."""
        kind = self.kind
        if isinstance(kind, Session):
            return Slices(max(kind.gap, _MIN_SLICE_NS))
        if isinstance(kind, Sliding):
            return Slices(max(kind.size, _MIN_SLICE_NS))
        if isinstance(kind, Join):
            return Slices(max(kind.after, kind.before, _MIN_SLICE_NS))
        if isinstance(kind, Tumbling):
            return Slices(max(kind.every, _MIN_SLICE_NS))
        return Slices(_MAX_SLICE_NS)

    def flushing(self) -> EventWindow:
        """Return the same windows, emitted when a bounded input ends."""
        return replace(self, time=replace(self.time, end_of_input="flush"))

    @property
    def headline(self) -> str:
        """The setting that matters most, in a word."""
        return headline_of(self.kind)

    @property
    def spacing(self) -> int:
        """Distance of windows, about, ns: a scale for pictures of them."""
        return spacing_of(self.kind)

    @property
    def brackets(self) -> tuple[str, str]:
        """Signs for whether the bounds of windows belong to them."""
        return "[", ")" if isinstance(self.kind, Tumbling) else "]"

    def describe(self) -> str:
        """Return the settings in a line."""
        parts = [describe_type(self.kind)]
        if self.keyed and self.join is None:
            parts.append("for each key")
        if self.allowed_lateness:
            parts.append(f"{format_duration(self.allowed_lateness)} for late messages")
        parts += describe_emissions(self.time)
        return ", ".join(parts)

    def describe_rules(self) -> Iterator[str]:
        """Return the lines of a plan: the shape of windows, then what closes them."""
        kind = self.kind
        yield describe_bounds(kind)
        yield from describe_closing(kind, self.time)
        if isinstance(kind, KeyedMessages):
            waits = {
                "flush": "emits waiting messages",
                "keep": "keeps waiting messages in the checkpoint",
            }
            end = waits[self.end_of_input] if self.sorts_by_time else "nothing is left"
        elif isinstance(kind, Count | State):
            end = COUNT_END_TEXTS[kind.end_of_input]
        elif not emits_at_end(self.time) and self.end_of_input != "keep":
            end = "closes open windows, of which nothing more comes"
        elif isinstance(kind, TableJoin):
            end = TABLE_END_TEXTS[self.end_of_input]
        else:
            end = END_OF_INPUT_TEXTS[self.end_of_input]
        yield f"when the input ends: {end}"
