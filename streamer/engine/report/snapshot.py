"""Snapshot of a stream, put together from the status of its shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_DROPPED_FROM_WINDOWS: Final = frozenset({"expired", "incomplete"})
"""Why messages are dropped that windows had taken; all others never were in any."""

Counts = Mapping[tuple[str, tuple[tuple[str, str], ...]], int]


@dataclass(frozen=True)
class Snapshot:
    """The state of a stream after a micro-batch.

    Attributes:
        messages: messages taken in: since the checkpoint's beginning with windows, else since
            the start of the program.
        open_windows: how many windows are open.
        held: messages in open windows.
        next_close: when the next one closes, Unix ns, or None.
        dropped: messages dropped, by reason.
        ended: the input has ended.
        batch: number of the newest micro-batch; -1 before the first.
        size: bytes of the payloads in open windows, and of the state by key.
        closed: windows that each key has of its own and that came out, since the checkpoint's
            beginning.
        closed_until: every window that ends at or before it has closed, Unix ns; None before the
            first.
        state_keys: keys of which the pipeline keeps something.
    """

    messages: int = 0
    open_windows: int = 0
    held: int = 0
    next_close: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    ended: bool = False
    batch: int = -1
    size: int = 0
    closed: int = 0
    closed_until: int | None = None
    state_keys: int = 0

    @classmethod
    def of(cls, statuses: Iterable[Mapping[str, Any]], counts: Counts, batch: int) -> Snapshot:
        """Add up the shards' statuses and the counts that no shard keeps."""
        statuses = list(statuses)
        dropped: Counter[str] = Counter()
        messages = 0
        for (name, labels), number in counts.items():
            if name == "input_received" and not labels:
                messages += number
            elif name == "input_dropped":
                dropped[dict(labels).get("reason", "")] += number
        for status in statuses:
            counters = status.get("counters", {})
            messages += sum(counters.get(name, 0) for name in ("taken", "failed", "filtered"))
            dropped.update(counters.get("dropped", {}))
        closed_until = [status.get("closed_until") for status in statuses]
        known = [end for end in closed_until if end is not None]
        due = [s["next_due"] for s in statuses if s.get("next_due") is not None]
        return cls(
            messages=messages
            + sum(
                number for reason, number in dropped.items() if reason not in _DROPPED_FROM_WINDOWS
            ),
            open_windows=_open_windows(statuses),
            held=sum(status.get("held", 0) for status in statuses),
            next_close=min(due) if due else None,
            dropped=dict(dropped),
            ended=bool(statuses) and all(status["ended"] for status in statuses),
            batch=batch,
            size=sum(
                (status.get("held_bytes") or 0) + status.get("state_bytes", 0)
                for status in statuses
            ),
            closed=sum(map(_closed_key_windows, statuses)),
            closed_until=min(known) if known and len(known) == len(closed_until) else None,
            state_keys=sum(status.get("state_keys", 0) for status in statuses),
        )


def _open_windows(statuses: Iterable[Mapping[str, Any]]) -> int:
    """Add up the windows: those of a grid are the same in all shards, those of keys are not."""
    ends = {window["end"] for status in statuses for window in status.get("open", ())}
    return len(ends) + sum(status.get("open_windows") or 0 for status in statuses)


def _closed_key_windows(status: Mapping[str, Any]) -> int:
    """Return how many windows of keys a shard has emitted."""
    if status.get("open_windows") is None:
        return 0
    counters: Mapping[str, int] = status.get("counters", {})
    return counters.get("emitted_windows", 0)
