"""The settings of windows, as all code takes them that must not know which kinds there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, Self

from streamer.window.settings.grid import Grid, Slices
from streamer.window.settings.window_types import Join, TableJoin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamer.window.settings.day_grid import DayGrid

Strategy = Literal["panes", "keys"]


class Window(Protocol):
    """The settings of a window buffer, with the rules that follow from them; times are in ns."""

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""

    @property
    def strategy(self) -> Strategy:
        """Way of shards with windows: as whole panes that all keys share, or key by key."""

    @property
    def keyed(self) -> bool:
        """Whether each key has windows of its own."""

    @property
    def spreads_groups(self) -> bool:
        """Whether the groups of a pipeline, too, are spread over the shards."""

    @property
    def count_based(self) -> bool:
        """Whether windows hold a number of messages, and have no times."""

    @property
    def passes_messages(self) -> bool:
        """Whether there are no windows, and each message goes on at once."""

    @property
    def join(self) -> Join | TableJoin | None:
        """Settings of a join of two inputs; None for windows of one stream."""

    @property
    def listed_keys(self) -> tuple[bytes, ...]:
        """Keys whose windows are emitted though no message ever came, as JSON."""

    @property
    def has_sessions(self) -> bool:
        """Whether the bounds of windows move while they are open."""

    @property
    def grid(self) -> Grid | DayGrid:
        """Grid of windows, for kinds that have one."""

    @property
    def panes(self) -> Grid | DayGrid | Slices:
        """Stretches of time by which stage 1 packs messages."""

    @property
    def epoch(self) -> int:
        """Distance of the panes of windows on a grid, about."""

    @property
    def implicit_size(self) -> int | None:
        """Size of every window, where only its end is in metadata and reports; else None."""

    @property
    def uses_event_time(self) -> bool:
        """Whether the largest event time closes windows, rather than the batch time."""

    @property
    def allowed_lateness(self) -> int:
        """Time for which windows wait for late messages."""

    @property
    def max_ahead(self) -> int | None:
        """Time that a message may be ahead of the batch time; None for any."""

    @property
    def expire_delay(self) -> int | None:
        """Time that back pressure may hold up a due window; None for kinds that never expire."""

    @property
    def drops_expired(self) -> bool:
        """Whether a window that has expired is dropped."""

    @property
    def end_of_input(self) -> str:
        """Fate of open windows when a bounded input has ended: `wait`, `flush` or `keep`."""

    @property
    def retention(self) -> int | None:
        """Time that results are kept for queries after their window's end; None for not at all."""

    @property
    def unbounded(self) -> bool:
        """Whether windows never end, and so have no bounds."""

    @property
    def holds_nothing(self) -> bool:
        """Whether windows aggregate every message at once, and hold none."""

    @property
    def sorts_by_time(self) -> bool:
        """Whether a window's messages come in order of their event times."""

    @property
    def aggregation_obstacle(self) -> str | None:
        """Reason why windows of this kind keep messages, whatever the mapping; None for none."""

    def due_time(self, end: int) -> int:
        """Return the time, by the clock of the windows, at which one with this end closes."""

    def closed_until(self, clock: int) -> int:
        """Return the newest end of a window that a clock has closed, for windows on a grid."""

    def due_count(self, t: int) -> int:
        """Return a number that grows with time, and stands for the windows due by then."""

    def next_due_time(self, t: int) -> int | None:
        """Return the first due time after a time, where windows lie on a grid; else None."""

    def flushing(self) -> Self:
        """Return the same windows, emitted when a bounded input ends."""

    @property
    def headline(self) -> str:
        """The setting that matters most, in a word: `10s`, `100`."""

    @property
    def spacing(self) -> int:
        """Distance of windows, about: a scale for pictures of them."""

    @property
    def brackets(self) -> tuple[str, str]:
        """Signs for whether the bounds of windows belong to them: `[`, `)`."""

    def describe(self) -> str:
        """Return the settings in a line: `windows of 10s every 5s, 2s for late messages`."""

    def describe_rules(self) -> Iterator[str]:
        """Return the lines of a plan: the shape of windows, then what closes them."""
