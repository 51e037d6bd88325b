"""How often each key occurs, as `count_by` says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.element import Question
from streamer.bloblang.errors import ToldError
from streamer.bloblang.methods.aggregates import key_text
from streamer.window.folds.asked import asked
from streamer.window.folds.part import Spoiler, placed
from streamer.window.folds.running.part import Spoilt, earlier, spoilt


class Counts:
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

    def at(self, number: int) -> dict[str, int]:
        """Return the counts after the first so many keys that were added."""
        if number < self._counted:
            self._now, self._counted = dict(self._before), 0
        now = self._now
        for key in self._added[self._counted : number]:
            now[key] = now.get(key, 0) + 1
        self._counted = number
        return dict(sorted(now.items()))


Counted = tuple[Counts, int]
"""A window's counts, and how many keys had been added to them."""


class RunningCounted:
    """See `part.Running`. The state is `Counted`, or the first message that spoils the part."""

    def __init__(self, origin: str, question: Question | None) -> None:
        """Take what error texts call the values, and the query."""
        self._origin = origin
        self._question = question

    @property
    def empty(self) -> Counted:
        """See `part.Running`; each window gets counts of its own."""
        return Counts({}), 0

    def prepared(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        found, bad = asked(values, self._question, key_text, self._origin, "")
        for spoiler in bad:
            found[spoiler.place] = spoiler
        return found

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is Spoilt:
            return state
        if type(value) is Spoiler:
            return spoilt(value, arrival, place)
        counts, number = state
        counts.add(value)
        return counts, number + 1

    def joined(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is Spoilt:
            return earlier(one, other)
        if type(other) is Spoilt:
            return other
        together: dict[str, int] = self.value(one)
        for key, count in self.value(other).items():
            together[key] = together.get(key, 0) + count
        return Counts(together), 0

    def value(self, state: Any) -> dict[str, int]:
        """See `part.Running`."""
        if type(state) is Spoilt:
            raise ToldError(placed(state.text, state.place), sealed=True)
        counts, number = state
        found: dict[str, int] = counts.at(number)
        return found

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return list(state) if type(state) is Spoilt else self.value(state)

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return Spoilt(*plain) if type(plain) is list else (Counts(plain), 0)
