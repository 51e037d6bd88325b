"""Whether any, or all, values pass a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from streamer.bloblang.errors import TypeMismatch
from streamer.bloblang.message_expression import ElementQuery
from streamer.window.aggregate.accumulator import (
    Accumulator,
    InvalidByGroup,
    InvalidValue,
    ValueColumn,
    decode_arrivals,
    decode_invalid,
    encode_arrivals,
    encode_invalid,
    find_invalid,
    join_invalid,
    merge_invalid,
    take_by_group,
)
from streamer.window.aggregate.query_values import query_values
from streamer.window.settings.int_codec import Ints, pack_strings, unpack_strings

_NEVER: Final = np.iinfo(np.int64).max


class AnyAllState(NamedTuple):
    """By group, the arrival of the first message that decides; and the invalid values."""

    decided_at: Ints
    invalid: InvalidByGroup


class AnyAllAccumulator(Accumulator):
    """`any` is decided by the first value that passes, `all` by the first that does not.

    A value for which the test fails counts only when it comes before the one that decides. A
    window's state is the arrival of the message that decides, None or `InvalidValue`.
    """

    _dumps_invalid_as_list = True

    def __init__(self, decides: bool, origin: str, question: ElementQuery) -> None:
        """Take the result that decides, what error texts call the values, and the test."""
        self._decides = decides
        self._origin = origin
        self._question = question

    def make_column(self, values: list[Any]) -> ValueColumn:
        """Return a column of booleans: which messages decide."""
        answers, invalid = self._test(values)
        return ValueColumn(np.array(answers, bool) == self._decides, invalid, len(values))

    def _test(self, values: list[Any]) -> tuple[list[Any], list[InvalidValue]]:
        answers = self._question.evaluate(values)
        if set(map(type, answers)) <= {bool}:
            return answers, []
        neutral = not self._decides
        return query_values(answers, None, _check_bool, self._origin, neutral, "element")

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> AnyAllState:
        """Find the first message of each group that decides."""
        decided = np.full(count, _NEVER)
        deciding = np.flatnonzero(column.values)[::-1]
        decided[groups[deciding]] = arrivals[deciding]  # the last that is assigned is the first
        return AnyAllState(decided, find_invalid(column, groups, arrivals))

    def merge_states(
        self, states: list[AnyAllState], where: list[Ints], before: list[Ints], count: int
    ) -> AnyAllState:
        """Take the earliest message of each group's partial states."""
        decided = np.full(count, _NEVER)
        for state, numbers in zip(states, where, strict=True):
            decided[numbers] = np.minimum(decided[numbers], state.decided_at)
        return AnyAllState(decided, merge_invalid(states, where, before))

    def take_groups(self, state: AnyAllState, indices: Ints) -> AnyAllState:
        """Return the state of some groups."""
        invalid = take_by_group(state.invalid, indices)
        return AnyAllState(state.decided_at[indices], invalid)

    def encode_state(self, state: AnyAllState) -> bytes:
        """Write which groups are decided, the arrivals of these, and the invalid values."""
        known = state.decided_at != _NEVER
        flags = len(known).to_bytes(8, "little") + np.packbits(known).tobytes()
        arrivals = encode_arrivals(state.decided_at[known])
        return pack_strings([flags, arrivals, encode_invalid(state.invalid)])

    def decode_state(self, data: bytes, shift: int) -> AnyAllState:
        """Read what `encode_state` wrote."""
        flags, arrivals, invalid = unpack_strings(data)
        size = int.from_bytes(flags[:8], "little")
        known = np.unpackbits(np.frombuffer(flags, np.uint8, offset=8), count=size).astype(bool)
        decided = np.full(size, _NEVER)
        decided[known] = decode_arrivals(arrivals, shift)
        return AnyAllState(decided, decode_invalid(invalid, shift))

    def result_of_group(self, state: AnyAllState, group: int) -> bool:
        """Return a group's result; raise the error of a value before the one that decides."""
        decided = int(state.decided_at[group])
        invalid = state.invalid.get(group)
        if invalid is not None and invalid.arrival < decided:
            raise self._make_error(invalid)
        return self._decides if decided != _NEVER else not self._decides

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return the test's result for each value, or `InvalidValue`."""
        return join_invalid(*self._test(values))

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Return the state, or what the first message that decides or is invalid makes it."""
        if state is not None:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        return arrival if value == self._decides else None

    def _merge_valid(self, one: Any, other: Any) -> Any:
        return min(one, other, key=_arrival_of)

    _merge_invalid = _merge_valid

    def result_of(self, state: Any) -> bool:
        """Return a window's result; raise the error of a value before the one that decides."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        return self._decides if state is not None else not self._decides

    def dump(self, state: Any) -> Any:
        """Return the state, which JSON can hold."""
        return state


def _check_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeMismatch(value, "bool")
    return value


def _arrival_of(state: Any) -> int:
    return state.arrival if type(state) is InvalidValue else state
