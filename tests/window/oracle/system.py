"""`system_window` said again, naively: it replays micro-batches, keeping every message in a list.

It shares no code with the product. Times are ns. A message's time is a number, "now", or None for
what is no time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

YEAR_ONE = -62135596800 * 10**9


@dataclass(frozen=True)
class Said:
    """A message: a name that no other has, its time, its key, and whether it failed upstream."""

    name: str
    time: int | Literal["now"] | None
    key: str = ""
    failed: bool = False


@dataclass(frozen=True)
class MicroBatch:
    """`busy`: from when to when since the one before the stream's own processors and outputs were
    at work, in parts; None for all the time."""

    t: int
    messages: tuple[Said, ...] = ()
    start: str = "first"
    backlog: bool = False
    ended: bool = False
    busy: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Rules:
    size: int
    slide: int | None = None
    offset: int = 0
    lateness: int = 0
    expire_after: int | None = None
    on_expired: str = "drop"
    end_of_input: str = "wait"

    @property
    def epoch(self) -> int:
        return self.slide or self.size


@dataclass
class Held:
    name: str
    key: str
    open: list[int]
    emitted: bool = False


@dataclass
class Out:
    """What one micro-batch gives: windows as (end, reason, [(name, key), …]), by end."""

    failed: list[str] = field(default_factory=list)
    windows: list[tuple[int, str, list[tuple[str, str]]]] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    expired: list[int] = field(default_factory=list)


class Oracle:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.now: int | None = None
        self.horizon: int | None = None
        self.start: str | None = None
        self.backlog = False
        self.held: list[Held] = []
        self.released: set[str] = set()

    def ends(self, time: int) -> list[int]:
        """All window ends E with E - size < time <= E, one by one."""
        r = self.rules
        k = (time - YEAR_ONE - r.offset) // r.epoch - 1
        found = []
        while (end := YEAR_ONE + r.offset + k * r.epoch) < time + r.size:
            if end - r.size < time <= end:
                found.append(end)
            k += 1
        return found

    def newest_end(self, fits: int) -> int:
        """The newest end that is not after a time."""
        r = self.rules
        return YEAR_ONE + r.offset + (fits - YEAR_ONE - r.offset) // r.epoch * r.epoch

    def step(self, batch: MicroBatch) -> Out:
        r, out = self.rules, Out()
        before = self.now
        first = self.now is None or batch.start != self.start
        pressed = not first and not self.backlog and not batch.backlog
        self.now = now = batch.t if self.now is None else max(self.now, batch.t)
        self.start, self.backlog = batch.start, batch.backlog
        if self.horizon is None:
            # Decided: there is no instant before the first int64, in 1677; of it alone this asks.
            self.horizon = max(self.newest_end(now - max(r.epoch, r.lateness) - 1), -(2**63))
        self._take(batch, now, out)
        if pressed and r.on_expired == "drop":
            patience = max(r.epoch, 10 * 10**9) if r.expire_after is None else r.expire_after
            previous = self._current(now) - r.epoch
            for end in self._open():
                since = now if before is None else before
                busy = ((since, now),) if batch.busy is None else batch.busy
                overdue = [(max(a, end + r.lateness), min(b, now)) for a, b in busy]
                if end < previous and sum(max(b - a, 0) for a, b in overdue) > patience:
                    self._expire(end, out)
        if not batch.backlog:
            for end in self._open():
                if now >= end + r.lateness:
                    self._emit(end, "final", out)
            self.horizon = max(self.horizon, self.newest_end(now - r.lateness))
        if batch.ended and r.end_of_input == "flush":
            for end in self._open():
                self._emit(end, "flush", out)
                self.horizon = max(self.horizon, end)
        return out

    def _current(self, now: int) -> int:
        """The smallest end that is not before now."""
        newest = self.newest_end(now)
        return newest if newest == now else newest + self.rules.epoch

    def _take(self, batch: MicroBatch, now: int, out: Out) -> None:
        assert self.horizon is not None
        for said in batch.messages:
            time = said.time
            if said.failed:
                out.failed.append(said.name)
                continue
            if time is None:
                out.dropped[said.name] = "timestamp"
                continue
            # Stage 1 sees the recorded time alone, so after a leap back of the clock no message's
            # own time is exactly T.
            if time == "now" or time == now == batch.t:
                time = max(now, self.horizon + 1)
            still_open = [end for end in self.ends(time) if end > self.horizon]
            if still_open:
                self.held.append(Held(said.name, said.key, still_open))
            else:
                out.dropped[said.name] = "late"

    def _open(self) -> list[int]:
        return sorted({end for held in self.held for end in held.open})

    def _emit(self, end: int, reason: str, out: Out) -> None:
        inside = [held for held in self.held if end in held.open]
        out.windows.append((end, reason, [(held.name, held.key) for held in inside]))
        for held in inside:
            held.emitted = True
        self._leave(end, out)

    def _expire(self, end: int, out: Out) -> None:
        out.expired.append(end)
        self._leave(end, out)

    def _leave(self, end: int, out: Out) -> None:
        for held in self.held:
            if end in held.open:
                held.open.remove(end)
        for held in self.held:
            if not held.open and held.emitted:
                self.released.add(held.name)
            elif not held.open:
                out.dropped[held.name] = "expired"
        self.held = [held for held in self.held if held.open]
