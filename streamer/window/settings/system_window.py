"""`system_window`: its settings, and its rules for what is late, closed and expired.

Times and durations are ns. The rules are those of the Redpanda Connect buffer of this name, with
the cases that its documentation leaves open decided in one way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from streamer.core.durations import MILLISECOND, SECOND, format_duration
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.describe import END_OF_INPUT_TEXTS, describe_grid, describe_shape
from streamer.window.settings.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterator

OnExpired = Literal["drop", "keep"]
EndOfInput = Literal["wait", "flush", "keep"]

_MIN_TIME_NS: Final = -(2**63)
_MIN_EXPIRE_AFTER_NS: Final = 10 * SECOND


@dataclass(frozen=True, slots=True)
class SystemWindow:
    """The settings (`Window`); build one only of those without problems.

    Attributes:
        size: of a window, ns.
        slide: ns between window ends; None (or 0) for tumbling windows.
        offset: ns by which all ends are moved.
        allowed_lateness: ns that a window stays open after its end.
        expire_after: ns for which the stream's own processors and outputs may hold up a window that
            is due; None for the default, the larger of one epoch and 10 s.
        on_expired: whether an expired window is dropped, or kept and emitted late.
        end_of_input: what becomes of open windows when a bounded input has ended.
        retention: ns that emitted results are kept for queries; None for not at all.
    """

    size: int
    slide: int | None = None
    offset: int = 0
    allowed_lateness: int = 0
    expire_after: int | None = None
    on_expired: OnExpired = "drop"
    end_of_input: EndOfInput = "wait"
    retention: int | None = None

    strategy: ClassVar[Literal["panes"]] = "panes"
    keyed: ClassVar[bool] = False
    spreads_groups: ClassVar[bool] = True
    count_based: ClassVar[bool] = False
    has_sessions: ClassVar[bool] = False
    listed_keys: ClassVar[tuple[bytes, ...]] = ()
    uses_event_time: ClassVar[bool] = False
    brackets: ClassVar[tuple[str, str]] = ("(", "]")
    join: ClassVar[None] = None
    passes_messages: ClassVar[bool] = False
    max_ahead: ClassVar[None] = None
    aggregation_obstacle: ClassVar[None] = None
    sorts_by_time: ClassVar[bool] = False
    unbounded: ClassVar[bool] = False
    holds_nothing: ClassVar[bool] = False

    @property
    def epoch(self) -> int:
        """Nanoseconds from one window end to the next."""
        return self.slide or self.size

    @property
    def grid(self) -> Grid:
        """Grid of windows (end - size, end]."""
        return Grid(self.epoch, self.size, self.offset)

    @property
    def panes(self) -> Grid:
        """Stretches of time by which stage 1 packs messages: those of the grid."""
        return self.grid

    @property
    def implicit_size(self) -> int:
        """Size of every window: messages and reports have only its end."""
        return self.size

    @property
    def drops_expired(self) -> bool:
        """Whether a window that has expired is dropped."""
        return self.on_expired == "drop"

    @property
    def expire_delay(self) -> int:
        """`expire_after`, with its default."""
        if self.expire_after is None:
            return max(self.epoch, _MIN_EXPIRE_AFTER_NS)
        return self.expire_after

    @property
    def fingerprint(self) -> str:
        """Identity of the state: a checkpoint with another one cannot be continued."""
        grid = ",".join(format_duration(ns) for ns in (self.size, self.epoch, self.offset))
        return f"system_window({grid})"

    def initial_closed_until(self, t: int) -> int:
        """Return `closed_until` of the very first start: the previous window is still taken.

        It is never earlier than the first time of int64.
        """
        return max(self.grid.end_before(t - max(self.epoch, self.allowed_lateness)), _MIN_TIME_NS)

    def closed_until(self, t: int) -> int:
        """Return the newest end whose window has closed at a batch time: end + lateness <= t."""
        return self.grid.end_at_or_before(t - self.allowed_lateness)

    def is_late(self, pane: int, closed_until: int) -> bool:
        """Whether messages of a pane are late: all windows that hold them had closed before.

        Args:
            pane: of the messages.
            closed_until: after the micro-batch before theirs, so that a window which their own
                batch time closes still takes them; `initial_closed_until` at the very first start.
        """
        return self.grid.last_end(pane) <= closed_until

    def expired_until(self, t: int, pressure: BackPressure) -> int | None:
        """Return the newest end whose window has expired at a time, if any may have.

        It is older than the previous window, and since it was due the stream's own processors and
        outputs have been at work for more than `expire_after`.
        """
        until = pressure.overdue_since(self.expire_delay)
        if until is None:
            return None
        overdue = self.grid.end_before(until - self.allowed_lateness)
        previous = self.grid.end_at_or_after(t) - self.epoch
        return min(overdue, previous - self.epoch)

    def due_time(self, end: int) -> int:
        """Return when a window closes: its end plus the lateness, up to Spark's whole ms."""
        return -(-(end + self.allowed_lateness) // MILLISECOND) * MILLISECOND

    def due_count(self, t: int) -> int:
        """Return how many due times have passed since year 1; it grows by one at every `due`."""
        whole = t // MILLISECOND * MILLISECOND
        return self.grid.index_of(self.closed_until(whole))

    def next_due_time(self, t: int) -> int:
        """Return the first due time after a time."""
        whole = t // MILLISECOND * MILLISECOND
        return self.due_time(self.closed_until(whole) + self.epoch)

    def flushing(self) -> SystemWindow:
        """Return the same windows, emitted when a bounded input ends."""
        return replace(self, end_of_input="flush")

    @property
    def headline(self) -> str:
        """The setting that matters most, in a word."""
        return format_duration(self.size)

    @property
    def spacing(self) -> int:
        """Distance of windows, ns: a scale for pictures of them."""
        return self.epoch

    def describe(self) -> str:
        """Return the settings in a line."""
        text = describe_grid(self.size, self.epoch, self.offset)
        wait = self.allowed_lateness
        return f"{text}, {format_duration(wait)} for late messages" if wait else text

    def describe_rules(self) -> Iterator[str]:
        """Return the lines of a plan: the shape of windows, then what closes them."""
        yield f"{describe_shape(self.size, self.epoch, self.offset)}, (end - size, end]"
        wait = format_duration(self.allowed_lateness)
        yield f"closes by the system clock at its end + {wait}"
        expire_delay = format_duration(self.expire_delay)
        expired = {"drop": "dropped", "keep": "emitted late"}[self.on_expired]
        yield f"under back pressure, overdue by more than {expire_delay}: {expired}"
        yield f"when the input ends: {END_OF_INPUT_TEXTS[self.end_of_input]}"


def find_system_window_problems(
    size: int | None,
    slide: int | None = None,
    offset: int | None = None,
    allowed_lateness: int | None = None,
    expire_after: int | None = None,
) -> list[tuple[str, str]]:
    """Check the settings of a `system_window`, as they stand in a config.

    Args:
        size: ns; None when the field is missing or empty, as for the others.
        slide: ns.
        offset: ns.
        allowed_lateness: ns.
        expire_after: ns.

    Returns:
        The field and what is wrong with it, for every field that is refused.
    """
    if size is None or size <= 0:
        detail = "is missing" if size is None else f"is {format_duration(size)}"
        return [("size", f"size {detail}, but a window needs a length above 0s, such as 10m")]
    problem_list = []
    length = format_duration(size)

    def refuse(field: str, value: int, expected: str) -> None:
        problem_list.append((field, f"{field} is {format_duration(value)}, {expected}"))

    if slide is not None and slide < 0:
        refuse("slide", slide, "but it must not be negative; leave it out for tumbling windows")
    elif slide is not None and slide >= size:
        refuse("slide", slide, f"but it must be shorter than the window's size, {length}")
    if offset is not None and abs(offset) >= size:
        refuse("offset", offset, f"but it must be within the window's size, {length}")
    elif offset is not None and slide is not None and 0 < slide <= abs(offset):
        refuse("offset", offset, f"but it must be within the slide, {format_duration(slide)}")
    if allowed_lateness is not None and allowed_lateness < 0:
        refuse("allowed_lateness", allowed_lateness, "but it must not be negative")
    elif allowed_lateness is not None and allowed_lateness >= size:
        expected = f"but it must be shorter than the window's size, {length}"
        refuse("allowed_lateness", allowed_lateness, expected)
    if expire_after is not None and expire_after < 0:
        refuse("expire_after", expire_after, "but it must not be negative")
    return problem_list
