"""How often each key occurs, as `count_by` says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.errors import RecordedError
from streamer.bloblang.message_expression import ElementQuery
from streamer.bloblang.methods.aggregates import format_key
from streamer.window.aggregate.accumulator import InvalidValue, insert_index
from streamer.window.aggregate.per_message.message_accumulator import (
    InvalidState,
    make_invalid_state,
    select_earlier,
)
from streamer.window.aggregate.query_values import query_values


class CountLog:
    """The counts of a window, and the keys that were added in this micro-batch, in their order.

    A copy after every message would take more memory than the messages do; so what the window came
    to at one of them is found by counting on from there, or from the start.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self._before = counts
        self._now = dict(counts)
        self._added: list[str] = []
        self._counted = 0

    def add(self, key: str) -> None:
        """Add a key."""
        self._added.append(key)

    def counts_at(self, number: int) -> dict[str, int]:
        """Return the counts after the first so many keys that were added."""
        if number < self._counted:
            self._now, self._counted = dict(self._before), 0
        now = self._now
        for key in self._added[self._counted : number]:
            now[key] = now.get(key, 0) + 1
        self._counted = number
        return dict(sorted(now.items()))


CountLogState = tuple[CountLog, int]
"""A window's counts, and how many keys had been added to them."""


class CountByAccumulator:
    """See `part.Running`. The state is `Counted`, or the first message that spoils the part."""

    def __init__(self, origin: str, question: ElementQuery | None) -> None:
        """Take what error texts call the values, and the query."""
        self._origin = origin
        self._question = question

    @property
    def empty_state(self) -> CountLogState:
        """See `part.Running`; each window gets counts of its own."""
        return CountLog({}), 0

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        keys, bad = query_values(values, self._question, format_key, self._origin, "")
        for spoiler in bad:
            keys[spoiler.place] = spoiler
        return keys

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is InvalidState:
            return state
        if type(value) is InvalidValue:
            return make_invalid_state(value, arrival, place)
        counts, number = state
        counts.add(value)
        return counts, number + 1

    def merge(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is InvalidState:
            return select_earlier(one, other)
        if type(other) is InvalidState:
            return other
        together: dict[str, int] = self.result_of(one)
        for key, count in self.result_of(other).items():
            together[key] = together.get(key, 0) + count
        return CountLog(together), 0

    def result_of(self, state: Any) -> dict[str, int]:
        """See `part.Running`."""
        if type(state) is InvalidState:
            raise RecordedError(insert_index(state.text, state.place), sealed=True)
        counts, number = state
        counts_by_key: dict[str, int] = counts.counts_at(number)
        return counts_by_key

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return list(state) if type(state) is InvalidState else self.result_of(state)

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return InvalidState(*plain) if type(plain) is list else (CountLog(plain), 0)
