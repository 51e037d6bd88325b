"""The largest values, as `top_k` gives them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from streamer.bloblang.element import Question
from streamer.bloblang.errors import ToldError, UnplacedError
from streamer.bloblang.methods.aggregates import MIXED, largest, rank
from streamer.window.folds.asked import asked
from streamer.window.folds.part import Spoiler, placed
from streamer.window.folds.running.part import Spoilt, earlier, spoilt
from streamer.window.folds.values import read_values, write_values

_NUMBERS: Final = 1
_TEXTS: Final = 2


class Entry(NamedTuple):
    """A value: what it is ordered by, its message's arrival, and the value."""

    rank: Any
    arrival: int
    item: Any


class Top(NamedTuple):
    """The largest values in descending order, and whether there were `_NUMBERS` and `_TEXTS`."""

    kinds: int
    entries: tuple[Entry, ...]


class RunningTop:
    """See `part.Running`. The state is `Top`, or the first message that spoils the part."""

    empty = Top(0, ())

    def __init__(self, number: int, origin: str, question: Question | None, distinct: bool) -> None:
        """Take how many, what error texts call the values, the query, and if equals are one."""
        self._number = number
        self._origin = origin
        self._question = question
        self._distinct = distinct

    def prepared(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`; what is taken is a rank and a value."""
        found, bad = asked(values, self._question, rank, self._origin, 0)
        pairs: list[Any] = list(zip(found, values, strict=True))
        for spoiler in bad:
            pairs[spoiler.place] = spoiler
        return pairs

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is Spoilt:
            return state
        if type(value) is Spoiler:
            return spoilt(value, arrival, place)
        ranked, item = value
        kinds, entries = state
        kind = _TEXTS if type(ranked) is str else _NUMBERS
        if kinds | kind == kinds and len(entries) == self._number and ranked <= entries[-1].rank:
            return state
        return self._top(kinds | kind, (*entries, Entry(ranked, arrival, item)))

    def joined(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is Spoilt:
            return earlier(one, other)
        if type(other) is Spoilt:
            return other
        entries = sorted((*one.entries, *other.entries), key=lambda entry: entry.arrival)
        return self._top(one.kinds | other.kinds, tuple(entries))

    def _top(self, kinds: int, entries: tuple[Entry, ...]) -> Top:
        if kinds == _NUMBERS | _TEXTS:
            return Top(kinds, ())
        found: list[Entry] = []
        for at in largest([entry.rank for entry in entries], len(entries)):
            if not self._distinct or not found or found[-1].rank != entries[at].rank:
                found.append(entries[at])
        return Top(kinds, tuple(found[: self._number]))

    def value(self, state: Any) -> list[Any]:
        """See `part.Running`."""
        if type(state) is Spoilt:
            raise ToldError(placed(state.text, state.place), sealed=True)
        if state.kinds == _NUMBERS | _TEXTS:
            origin = "method unique" if self._distinct else self._origin
            raise UnplacedError(f"{origin}: {MIXED}")
        return [entry.item for entry in state.entries]

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        if type(state) is Spoilt:
            return list(state)
        if not state.entries:
            return state.kinds
        ranks, arrivals, items = zip(*state.entries, strict=True)
        written = base64.b64encode(write_values([*ranks, *items])).decode()
        return {"kinds": state.kinds, "arrivals": arrivals, "values": written}

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        if type(plain) is list:
            return Spoilt(*plain)
        if type(plain) is int:
            return Top(plain, ())
        values, arrivals = read_values(base64.b64decode(plain["values"])), plain["arrivals"]
        count = len(arrivals)
        entries = map(Entry, values[:count], arrivals, values[count:])
        return Top(plain["kinds"], tuple(entries))
