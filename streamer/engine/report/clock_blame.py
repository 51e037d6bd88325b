"""The source or key that holds the clock of windows back: since when, and the windows that wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from streamer.window.inspect.window_query import WindowRow

HolderKind = Literal["source", "key"]


@dataclass(frozen=True, slots=True)
class ClockBlame:
    """The source or key that holds back the event time of a buffer, as of a micro-batch.

    Attributes:
        kind: `source` for a partition or input, `key` where each key has a clock of its own.
        name: of the source, or the key.
        part: the part of it that was read last, the path of a file; empty where it has no parts.
        event_time: the newest event time of a source, ns; None before its first message.
        since: batch time from which on it has held the clock, ns.
        ahead: distance of the furthest source from the clock, ns; of a key, distance of the
            window that closes last from the one that closes first.
        windows: open windows that wait for it.
        messages: messages in them.
        size: bytes of these; None where nobody has counted them.
        is_complete: whether all open windows are known; else the figures are lower bounds.
    """

    kind: HolderKind
    name: str
    part: str
    event_time: int | None
    since: int
    ahead: int
    windows: int
    messages: int
    size: int | None
    is_complete: bool

    def to_fields(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> ClockBlame:
        """Create a blame from the result of `to_fields`."""
        return cls(**fields)


def blame_clock(
    statuses: Iterable[Mapping[str, Any]],
    rows: Sequence[WindowRow],
    now: int,
    former: ClockBlame | None,
    *,
    is_complete: bool = True,
) -> ClockBlame | None:
    """Return the source or key that holds back the clock of one buffer; None where none does.

    Args:
        statuses: of the buffer's shards, after the micro-batch.
        rows: its open windows, as far as they are listed.
        now: the batch time, ns.
        former: the blame after the micro-batch before; None for none.
        is_complete: whether the rows are all open windows.
    """
    holders = [one for status in statuses if (one := status.get("clock_holder"))]
    blame = _blame_source(holders, rows, now) if holders else _blame_key(rows, now)
    if blame is None:
        return None
    if not is_complete:
        blame = replace(blame, is_complete=False)
    if former is not None and (former.kind, former.name) == (blame.kind, blame.name):
        return replace(blame, since=former.since, part=blame.part or former.part)
    return blame


def _blame_source(
    holders: Sequence[Mapping[str, Any]], rows: Sequence[WindowRow], now: int
) -> ClockBlame | None:
    """Return the blame of a source; None where no other one is further.

    All shards see the same clocks, each with the files of its own messages.
    """
    holder = max(holders, key=lambda one: str(one.get("part", "")))
    if not holder["ahead"]:
        return None
    time = holder["time"]
    waiting = [row for row in rows if row.closes is not None and row.closes_by == "event_time"]
    if time is not None:
        waiting = [row for row in waiting if (row.closes or 0) <= time + holder["ahead"]]
    part = str(holder.get("part", ""))
    return _make_blame("source", str(holder["source"]), part, time, holder["ahead"], waiting, now)


def _blame_key(rows: Sequence[WindowRow], now: int) -> ClockBlame | None:
    """Return the blame of the key whose window waits for the longest; None with fewer than two."""
    waiting = [row for row in rows if row.closes_by == "key_time" and row.closes is not None]
    if len({row.key for row in waiting}) < 2:
        return None
    first = min(waiting, key=lambda row: (row.closes or 0, row.key or ""))
    ahead = max(row.closes or 0 for row in waiting) - (first.closes or 0)
    own = [row for row in waiting if row.key == first.key]
    return _make_blame("key", first.key or "", "", None, ahead, own, now) if ahead else None


def _make_blame(
    kind: HolderKind,
    name: str,
    part: str,
    time: int | None,
    ahead: int,
    rows: Sequence[WindowRow],
    now: int,
) -> ClockBlame:
    sizes = [row.size for row in rows]
    known = [size for size in sizes if size is not None]
    return ClockBlame(
        *(kind, name, part, time, now, ahead, len(rows)),
        sum(row.messages or 0 for row in rows),
        sum(known) if len(known) == len(sizes) else None,
        is_complete=True,
    )
