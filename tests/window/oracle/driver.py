"""Replays micro-batches for one kind of window, keeping every message in a list."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace

from tests.window.oracle.events import Emitted, MicroBatch, Out
from tests.window.oracle.intake import Arrived, Clocks, Fields, Intake


@dataclass(eq=False)
class Window:
    """An open window.

    `changed` is the number of the micro-batch that changed it last, `active` the running time at
    which it came to be, where that may be later than its messages.
    """

    key: Hashable
    start: int
    end: int
    inside: list[Arrived] = field(default_factory=list)
    changed: int = 0
    active: int = 0

    @property
    def order(self) -> tuple[int, int, int]:
        """By end, then by the arrival of the first message."""
        # Decided: with a timezone whose dates have holes (Samoa left out a whole day) two windows
        # of a key may end together with the same first message: then by start.
        return self.end, min(arrived.number for arrived in self.inside), self.start

    def shown(self, reason: str, batch: int | None = None, by_time: bool = False) -> Emitted:
        """The window as a batch, of all its messages or of one micro-batch's."""
        inside = sorted(
            (a for a in self.inside if batch is None or a.batch == batch),
            key=lambda a: (a.time if by_time else 0, a.number),
        )
        return Emitted(
            reason,
            tuple(arrived.event.id for arrived in inside),
            inside[0].spelling,
            self.start,
            self.end,
            # Decided: under `forward` nothing else is kept, so the largest time of the batch.
            max(arrived.time for arrived in inside),
        )


class WindowOracle(ABC):
    """Micro-batches in, batches out; a kind says which windows take an event, and when one ends."""

    # Whether the bounds of a window that closed without its clock are remembered.
    remembers = True

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.intake = Intake(fields)
        self.before = deepcopy(self.intake.clocks)
        self.open: list[Window] = []
        self.remembered: set[tuple[Hashable, int, int]] = set()
        # Messages taken that windows yet to be opened may hold.
        self.kept: list[Arrived] = []

    @abstractmethod
    def take(self, arrived: Arrived) -> list[Window] | None:
        """Put the event into its windows; return those that it changes, None when it is late."""

    @abstractmethod
    def is_past(self, window: Window, clock: int) -> bool:
        """Whether the clock closes the window."""

    def may_need(self, arrived: Arrived, clock: int) -> bool:
        """Whether a window may be opened, at this clock or later, over a message already there."""
        return False

    def step(self, batch: MicroBatch) -> Out:
        out = Out()
        for key in self.intake.begin(batch):
            self._begin_afresh(key)
        self.before = before = deepcopy(self.intake.clocks)
        for event in batch.events:
            arrived = self.intake.admit(event, out)
            if arrived is None:
                continue
            changed = self.take(arrived)
            if changed is None:
                out.dropped.append((event.id, "late"))
                # Decided: late though the clock has not reached the end of its windows, since
                # idleness or the end of an input closed them: the clock that all keys share has
                # seen its time. One key's closed windows say nothing of how far the stream is, and
                # are known to no other shard. By the clock alone what is late is behind it, and
                # moves nothing.
                if self.fields.clock_scope == "stream":
                    self.intake.take(arrived)
                continue
            self.intake.take(arrived)
            for window in changed:
                window.changed = self.intake.batch
            out.batches += self.at_once(changed)
        self.intake.clocks.end_of_intake(batch)
        if self.fields.emit_also:
            out.batches += self._in_stages(batch, before)
        else:
            out.batches += self._as_they_stand()
        out.batches += self._close(batch, before)
        self._forget()
        return out

    def held(self) -> set[str]:
        """The messages that wait for a window to close."""
        if self.fields.emit == "forward":
            return set()
        return {arrived.event.id for window in self.open for arrived in window.inside}

    def is_shut(self, window: Window, clock: int | None) -> bool:
        """Whether a window takes nothing more, from one who sees this clock."""
        if (window.key, window.start, window.end) in self.remembered:
            return True
        return clock is not None and self.is_past(window, clock)

    def at_once(self, changed: list[Window]) -> list[Emitted]:
        """What an event makes come out at once, by end where it changes more than one window."""
        if self.fields.emit != "each":
            return []
        return [self.shown(window, "each") for window in in_order(changed)]

    def shown(self, window: Window, reason: str, batch: int | None = None) -> Emitted:
        """The window as a batch, in the order that the rules say."""
        return window.shown(reason, batch, self.fields.order == "event_time")

    def _as_they_stand(self) -> list[Emitted]:
        touched = in_order(w for w in self.open if w.changed == self.intake.batch)
        if self.fields.emit == "changes":
            return [self.shown(window, "changes") for window in touched]
        if self.fields.emit == "forward":
            return self._forwarded(touched)
        return []

    def _in_stages(self, batch: MicroBatch, before: Clocks) -> list[Emitted]:
        """What has changed, or is on time, but for what comes at its close now."""
        out = []
        on_time = "on_time" in self.fields.emit_also
        for window in in_order(self.open):
            closes = self._reason(window, batch) is not None
            if closes and self._comes_at_close(window, before):
                continue
            passed = self._has_ended(window, self.intake.clocks)
            if on_time and passed and not self._has_ended(window, before):
                out.append(self.shown(window, "on_time"))
            elif self.fields.emit == "changes" and window.changed == self.intake.batch:
                stage = ("late" if passed else "early") if on_time else "changes"
                out.append(self.shown(window, stage))
        return out

    def _has_ended(self, window: Window, clocks: Clocks) -> bool:
        """Whether the clock would have closed the window if it waited for nothing."""
        clock = clocks.after(window.key)
        return clock is not None and self.is_past(window, clock + self.fields.allowed_lateness)

    def _comes_at_close(self, window: Window, before: Clocks) -> bool:
        also = self.fields.emit_also
        if self.fields.emit == "final" or "close" in also:
            return True
        return "on_time" in also and not self._has_ended(window, before)

    def _forwarded(self, touched: list[Window]) -> list[Emitted]:
        # Decided: by end, then by the arrival of the first message of the batch that goes on.
        number = self.intake.batch
        fresh = [w for w in touched if any(a.batch == number for a in w.inside)]
        fresh.sort(
            key=lambda w: (w.end, min(a.number for a in w.inside if a.batch == number), w.start)
        )
        return [self.shown(window, "forward", number) for window in fresh]

    def _close(self, batch: MicroBatch, before: Clocks) -> list[Emitted]:
        # Decided: all closes of a micro-batch, whatever their reason, are in one order.
        closing = [(window, self._reason(window, batch)) for window in in_order(self.open)]
        shut = [(window, reason) for window, reason in closing if reason is not None]
        for window, reason in shut:
            self.open.remove(window)
            # Decided: what the end of the input closes is remembered like what idleness closes,
            # should the input grow after all: a closed window is never opened again.
            if reason != "final" and self.remembers:
                self.remembered.add((window.key, window.start, window.end))
        on_time_only = self.fields.emit != "final" and "close" not in self.fields.emit_also
        # What a number of messages has closed came out with the last of them.
        return [
            self.shown(window, "on_time" if on_time_only and reason == "final" else reason)
            for window, reason in shut
            if reason != "count" and self._comes_at_close(window, before)
        ]

    def _reason(self, window: Window, batch: MicroBatch) -> str | None:
        clocks, fields = self.intake.clocks, self.fields
        clock = clocks.after(window.key)
        # `after` stands still where the system clock may not close.
        if clock is not None and self.is_past(window, clock):
            return "final"
        # Decided: what is idle when the input ends is closed as idle, and not as flushed.
        behind = batch.backlog or batch.lag
        if fields.idle_timeout is not None and not behind:
            # Decided: a window waits from when it came to be, however old the messages are that an
            # event beside it has it come to be with.
            last = max(window.active, *(arrived.active for arrived in window.inside))
            if clocks.active - last >= fields.idle_timeout:
                return "idle"
        return "flush" if batch.ended and fields.end_of_input == "flush" else None

    def _begin_afresh(self, key: Hashable) -> None:
        # Decided: with its clock, a key loses the bounds that are remembered for it and the
        # messages that no open window holds, but not its open windows, since nothing may be lost:
        # they close by the new clock, by idleness, or at the end of the input. What was late by the
        # old clock for a window that now opens again is not by the new one.
        self.remembered = {bounds for bounds in self.remembered if bounds[0] != key}
        inside = {arrived.number for window in self.open for arrived in window.inside}
        others = [a for a in self.kept if a.key != key]
        mine = [a for a in self.kept if a.key == key and a.number in inside]
        self.kept = [*others, *(replace(a, clock=None) for a in mine)]

    def _forget(self) -> None:
        def needed(arrived: Arrived) -> bool:
            clock = self.intake.clocks.after(arrived.key)
            return clock is None or self.may_need(arrived, clock)

        self.kept = [arrived for arrived in self.kept if needed(arrived)]


def in_order(windows: Iterable[Window]) -> list[Window]:
    return sorted(windows, key=lambda window: window.order)
