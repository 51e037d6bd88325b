"""The largest values, as `top_k` gives them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from streamer.bloblang.errors import RecordedError, UnplacedError
from streamer.bloblang.message_expression import ElementQuery
from streamer.bloblang.methods.aggregates import MIXED_TYPES_ERROR, find_largest, sort_key
from streamer.window.aggregate.accumulator import InvalidValue, insert_index
from streamer.window.aggregate.per_message.message_accumulator import (
    InvalidState,
    make_invalid_state,
    select_earlier,
)
from streamer.window.aggregate.query_values import query_values
from streamer.window.aggregate.value_codec import read_values, write_values

_HAS_NUMBERS: Final = 1
_HAS_TEXTS: Final = 2


class RankedEntry(NamedTuple):
    """A value: what it is ordered by, its message's arrival, and the value."""

    rank: Any
    arrival: int
    item: Any


class TopKEntries(NamedTuple):
    """The largest values in descending order, and whether there were `_NUMBERS` and `_TEXTS`."""

    kinds: int
    entries: tuple[RankedEntry, ...]


class TopKAccumulator:
    """See `part.Running`. The state is `TopKEntries`, or the first message that spoils the part."""

    empty_state = TopKEntries(0, ())

    def __init__(
        self, number: int, origin: str, question: ElementQuery | None, distinct: bool
    ) -> None:
        """Take how many, what error texts call the values, the query, and if equals are one."""
        self._number = number
        self._origin = origin
        self._question = question
        self._distinct = distinct

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`; what is taken is a rank and a value."""
        ranks, bad = query_values(values, self._question, sort_key, self._origin, 0)
        pairs: list[Any] = list(zip(ranks, values, strict=True))
        for spoiler in bad:
            pairs[spoiler.place] = spoiler
        return pairs

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if type(state) is InvalidState:
            return state
        if type(value) is InvalidValue:
            return make_invalid_state(value, arrival, place)
        ranked, item = value
        kinds, entries = state
        kind = _HAS_TEXTS if type(ranked) is str else _HAS_NUMBERS
        if kinds | kind == kinds and len(entries) == self._number and ranked <= entries[-1].rank:
            return state
        return self._keep_largest(kinds | kind, (*entries, RankedEntry(ranked, arrival, item)))

    def merge(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if type(one) is InvalidState:
            return select_earlier(one, other)
        if type(other) is InvalidState:
            return other
        entries = sorted((*one.entries, *other.entries), key=lambda entry: entry.arrival)
        return self._keep_largest(one.kinds | other.kinds, tuple(entries))

    def _keep_largest(self, kinds: int, entries: tuple[RankedEntry, ...]) -> TopKEntries:
        if kinds == _HAS_NUMBERS | _HAS_TEXTS:
            return TopKEntries(kinds, ())
        kept_entries: list[RankedEntry] = []
        for at in find_largest([entry.rank for entry in entries], len(entries)):
            if not self._distinct or not kept_entries or kept_entries[-1].rank != entries[at].rank:
                kept_entries.append(entries[at])
        return TopKEntries(kinds, tuple(kept_entries[: self._number]))

    def result_of(self, state: Any) -> list[Any]:
        """See `part.Running`."""
        if type(state) is InvalidState:
            raise RecordedError(insert_index(state.text, state.place), sealed=True)
        if state.kinds == _HAS_NUMBERS | _HAS_TEXTS:
            origin = "method unique" if self._distinct else self._origin
            raise UnplacedError(f"{origin}: {MIXED_TYPES_ERROR}")
        return [entry.item for entry in state.entries]

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        if type(state) is InvalidState:
            return list(state)
        if not state.entries:
            return state.kinds
        ranks, arrivals, items = zip(*state.entries, strict=True)
        written = base64.b64encode(write_values([*ranks, *items])).decode()
        return {"kinds": state.kinds, "arrivals": arrivals, "values": written}

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        if type(plain) is list:
            return InvalidState(*plain)
        if type(plain) is int:
            return TopKEntries(plain, ())
        values, arrivals = read_values(base64.b64decode(plain["values"])), plain["arrivals"]
        count = len(arrivals)
        entries = map(RankedEntry, values[:count], arrivals, values[count:])
        return TopKEntries(plain["kinds"], tuple(entries))
