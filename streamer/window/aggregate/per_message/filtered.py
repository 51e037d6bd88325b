"""A part whose values are worked out for each message, some of which are left out or fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from streamer.bloblang.analysis.aggregates import Aggregate
from streamer.bloblang.compiler.message_expression import DroppedElement
from streamer.bloblang.errors import RecordedError
from streamer.bloblang.message_expression import ErrorValue
from streamer.window.aggregate.accumulator import insert_index
from streamer.window.aggregate.empty_result import empty_result
from streamer.window.aggregate.filtered import EvaluationFault
from streamer.window.aggregate.per_message.message_accumulator import MessageAccumulator


class FilteredMessageState(NamedTuple):
    """What a part has come to.

    Attributes:
        inner: the state of the values that are left.
        reached: by step, how many messages came to it; at the end, how many values are left.
        fault: what failed at the earliest step, and there first.
    """

    inner: Any
    reached: tuple[int, ...]
    fault: EvaluationFault | None


class FilteredAccumulator:
    """See `part.Running`. The state is `Chosen`."""

    def __init__(self, part: Aggregate, inner: MessageAccumulator) -> None:
        """Take the part, and what keeps it up to date when it is given the values."""
        assert part.expression is not None
        self._part = part
        self._inner = inner
        self._steps = len(part.expression.steps) + 2

    @property
    def empty_state(self) -> FilteredMessageState:
        """See `part.Running`."""
        return FilteredMessageState(self._inner.empty_state, (0,) * self._steps, None)

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        out = (ErrorValue, DroppedElement)
        kept = [value for value in values if type(value) not in out]
        if len(kept) == len(values):
            return self._inner.prepare(values)
        prepared = iter(self._inner.prepare(kept) if kept else ())
        return [value if type(value) in out else next(prepared) for value in values]

    def add(
        self, state: FilteredMessageState, value: Any, arrival: int, place: int
    ) -> FilteredMessageState:
        """See `part.Running`."""
        inner, reached, fault = state
        kind = type(value)
        if kind is not ErrorValue and kind is not DroppedElement:
            inner = self._inner.add(inner, value, arrival, reached[-1])
            return FilteredMessageState(inner, tuple([count + 1 for count in reached]), fault)
        step = value.step
        if kind is ErrorValue and (fault is None or step < fault.step):
            fault = EvaluationFault(reached[step], arrival, *value)
        reached_counts = tuple([count + (n <= step) for n, count in enumerate(reached)])
        return FilteredMessageState(inner, reached_counts, fault)

    def merge(self, one: FilteredMessageState, other: FilteredMessageState) -> FilteredMessageState:
        """See `part.Running`."""
        faults = [state.fault for state in (one, other) if state.fault is not None]
        fault = min(faults, key=lambda fault: (fault.step, fault.arrival), default=None)
        reached = tuple([a + b for a, b in zip(one.reached, other.reached, strict=True)])
        return FilteredMessageState(self._inner.merge(one.inner, other.inner), reached, fault)

    def result_of(self, state: FilteredMessageState) -> Any:
        """See `part.Running`."""
        fault = state.fault
        if fault is not None:
            raise RecordedError(
                insert_index(fault.text, fault.place), fault.sealed, fault.is_mismatch
            )
        if not state.reached[-1]:
            return empty_result(self._part)
        return self._inner.result_of(state.inner)

    def dump(self, state: FilteredMessageState) -> Any:
        """See `part.Running`."""
        return [self._inner.dump(state.inner), state.reached, state.fault]

    def load(self, plain: Any) -> FilteredMessageState:
        """See `part.Running`."""
        inner, reached, fault = plain
        known = None if fault is None else EvaluationFault(*fault)
        return FilteredMessageState(self._inner.load(inner), tuple(reached), known)
