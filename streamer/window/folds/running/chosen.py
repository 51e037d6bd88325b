"""A part whose values are worked out for each message, some of which are left out or fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from streamer.bloblang.compiler.element import Dropped
from streamer.bloblang.element import Failed
from streamer.bloblang.errors import ToldError
from streamer.bloblang.parts import Part
from streamer.window.folds.chosen import Fault
from streamer.window.folds.empty import of_nothing
from streamer.window.folds.part import placed
from streamer.window.folds.running.part import Running


class Chosen(NamedTuple):
    """What a part has come to.

    Attributes:
        inner: the state of the values that are left.
        reached: by step, how many messages came to it; at the end, how many values are left.
        fault: what failed at the earliest step, and there first.
    """

    inner: Any
    reached: tuple[int, ...]
    fault: Fault | None


class RunningChosen:
    """See `part.Running`. The state is `Chosen`."""

    def __init__(self, part: Part, inner: Running) -> None:
        """Take the part, and what keeps it up to date when it is given the values."""
        assert part.element is not None
        self._part = part
        self._inner = inner
        self._steps = len(part.element.steps) + 2

    @property
    def empty(self) -> Chosen:
        """See `part.Running`."""
        return Chosen(self._inner.empty, (0,) * self._steps, None)

    def prepared(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        out = (Failed, Dropped)
        kept = [value for value in values if type(value) not in out]
        if len(kept) == len(values):
            return self._inner.prepared(values)
        found = iter(self._inner.prepared(kept) if kept else ())
        return [value if type(value) in out else next(found) for value in values]

    def add(self, state: Chosen, value: Any, arrival: int, place: int) -> Chosen:
        """See `part.Running`."""
        inner, reached, fault = state
        kind = type(value)
        if kind is not Failed and kind is not Dropped:
            inner = self._inner.add(inner, value, arrival, reached[-1])
            return Chosen(inner, tuple([count + 1 for count in reached]), fault)
        step = value.step
        if kind is Failed and (fault is None or step < fault.step):
            fault = Fault(reached[step], arrival, *value)
        came = tuple([count + (n <= step) for n, count in enumerate(reached)])
        return Chosen(inner, came, fault)

    def joined(self, one: Chosen, other: Chosen) -> Chosen:
        """See `part.Running`."""
        faults = [state.fault for state in (one, other) if state.fault is not None]
        fault = min(faults, key=lambda fault: (fault.step, fault.arrival), default=None)
        reached = tuple([a + b for a, b in zip(one.reached, other.reached, strict=True)])
        return Chosen(self._inner.joined(one.inner, other.inner), reached, fault)

    def value(self, state: Chosen) -> Any:
        """See `part.Running`."""
        fault = state.fault
        if fault is not None:
            raise ToldError(placed(fault.text, fault.place), fault.sealed, fault.said)
        if not state.reached[-1]:
            return of_nothing(self._part)
        return self._inner.value(state.inner)

    def dump(self, state: Chosen) -> Any:
        """See `part.Running`."""
        return [self._inner.dump(state.inner), state.reached, state.fault]

    def load(self, plain: Any) -> Chosen:
        """See `part.Running`."""
        inner, reached, fault = plain
        known = None if fault is None else Fault(*fault)
        return Chosen(self._inner.load(inner), tuple(reached), known)
