"""What a shard says after a micro-batch: its counters, its windows, when it must be called next."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Counters:
    """Messages and windows since the checkpoint began; exact, since they are part of the state.

    They add up: what entered is failed + the drops for `timestamp` and `late` + taken, and taken is
    released + held + the drops for `expired`.

    Attributes:
        taken: messages that went into a window.
        failed: messages that were marked as failed upstream and passed by.
        dropped: messages dropped, by reason.
        released: messages given back after they had been in every window that they belong to, and
            emitted with one at least.
        emitted_windows: windows emitted by this shard.
        emitted_messages: messages emitted, counted once for every window.
        expired_windows: windows dropped under back pressure.
    """

    taken: int = 0
    failed: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    released: int = 0
    emitted_windows: int = 0
    emitted_messages: int = 0
    expired_windows: int = 0

    def drop(self, reason: str, count: int) -> None:
        """Count dropped messages."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that holds messages and has not closed.

    Attributes:
        start: ns, exclusive.
        end: ns, inclusive.
        messages: how many this shard holds of it.
        size: bytes of their payloads.
    """

    start: int
    end: int
    messages: int
    size: int


@dataclass(frozen=True, slots=True)
class Closed:
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
        horizon: every window that ends at or before it has closed, ns.
        counters: since the checkpoint began.
        held: messages in the state.
        held_bytes: their payloads' bytes.
        open: open windows, oldest first; no more than the shard cares to list.
        next_due: when the next window closes, ns; None when nothing is held.
        newest_end: the end of the newest window that holds messages, ns; None when none does.
        closed: the windows that closed in this micro-batch, in order.
        log: lines to be logged.
    """

    now: int
    horizon: int
    counters: Counters
    held: int
    held_bytes: int
    open: tuple[OpenWindow, ...]
    next_due: int | None
    newest_end: int | None
    closed: tuple[Closed, ...]
    log: tuple[LogLine, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return asdict(self)
