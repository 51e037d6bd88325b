"""Status of a shard after a micro-batch: counters, windows, and when one is due next."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Counters:
    """Messages and windows since the checkpoint began; exact, since they are part of the state.

    They add up: what entered is failed + filtered + the drops for all reasons but those of messages
    that were taken (`expired`, `incomplete`) + taken, and taken is released + held +
    passed_over + these drops.

    Attributes:
        taken: messages that went into a window.
        failed: messages that were marked as failed upstream and passed by.
        dropped: messages dropped, by reason.
        released: messages given back after they had been in every window that they belong to, and
            emitted with one at least, or suppressed.
        emitted_windows: windows emitted by this shard; a window of each key where there are keys.
        emitted_messages: messages emitted, counted once for every window.
        expired_windows: windows dropped under back pressure.
        filtered: messages that a filter did not keep.
        suppressed: messages of windows that a `having` suppressed, counted once for every window.
        passed_over: of a join, messages that were given back without having been in a window; of
            count windows of older versions, those that now are dropped as `incomplete`.
    """

    taken: int = 0
    failed: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    released: int = 0
    emitted_windows: int = 0
    emitted_messages: int = 0
    expired_windows: int = 0
    filtered: int = 0
    suppressed: int = 0
    passed_over: int = 0

    def count_dropped(self, reason: str, count: int) -> None:
        """Count dropped messages."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that holds messages and has not closed.

    Attributes:
        start: ns, as the kind's rules name it.
        end: ns, as the kind's rules name it.
        messages: how many this shard holds of it.
        size: bytes of their payloads.
    """

    start: int
    end: int
    messages: int
    size: int


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A window that closed in this micro-batch.

    Attributes:
        end: ns.
        messages: how many this shard had of it.
        reason: `final`, `flush` or `expired`.
    """

    end: int
    messages: int
    reason: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line for the log: level (`WARN`, …), text and fields."""

    level: str
    text: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Status:
    """A shard after a micro-batch.

    Attributes:
        now: T, ns.
        closed_until: every window that ends at or before it has closed, ns; None before the first.
        counters: since the checkpoint began.
        held: messages in the state.
        held_bytes: their payloads' bytes; of aggregated ones, those of the aggregates.
        open: open windows, oldest first; no more than the shard cares to list.
        next_due: when the system clock closes the next window, ns; None when nothing is held, or
            another clock does.
        newest_end: the last instant of the newest window that holds messages, ns; None when none
            does.
        closed: the windows that closed in this micro-batch, in order.
        log: lines to be logged.
        open_windows: how many windows are open, where that is not to be told from `open`.
    """

    now: int
    closed_until: int | None
    counters: Counters
    held: int
    held_bytes: int
    open: tuple[OpenWindow, ...]
    next_due: int | None
    newest_end: int | None
    closed: tuple[ClosedWindow, ...]
    log: tuple[LogLine, ...]
    open_windows: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the status as plain values, for JSON."""
        return asdict(self)
