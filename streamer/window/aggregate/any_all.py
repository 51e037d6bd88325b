"""Whether any, or all, values pass a test: the message that decides, and the first that fails."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from streamer.bloblang.compiler.message_expression import INDEX_PLACEHOLDER
from streamer.bloblang.errors import RecordedError, TypeMismatch
from streamer.bloblang.message_expression import ElementQuery, ErrorValue
from streamer.window.aggregate.accumulator import (
    InvalidByGroup,
    InvalidValue,
    ValueColumn,
    concat_invalid,
    decode_invalid,
    encode_invalid,
    find_invalid,
    insert_index,
    merge_invalid,
)
from streamer.window.settings.int_codec import (
    Ints,
    pack_ints,
    pack_strings,
    unpack_ints,
    unpack_strings,
)

_NEVER: Final = np.iinfo(np.int64).max


class AnyAllState(NamedTuple):
    """By group, the arrival of the first message that decides; and the groups that are spoilt."""

    decided_at: Ints
    invalid: InvalidByGroup


class AnyAllAggregate:
    """`any` is decided by the first value that passes, `all` by the first that does not."""

    def __init__(self, decides: bool, origin: str, question: ElementQuery) -> None:
        """Take what decides, what error texts call the values, and the test."""
        self._decides = decides
        self._origin = origin
        self._question = question

    def make_column(self, values: list[Any]) -> ValueColumn:
        """See `part.Accumulator`; the column says which messages decide."""
        answers = self._question.evaluate(values)
        bad = []
        if set(map(type, answers)) != {bool}:
            for place, answer in enumerate(answers):
                if type(answer) is not bool:
                    bad.append(InvalidValue(place, 0, self._error_text(answer)))
                    answers[place] = not self._decides
        decided = np.array(answers, bool) == self._decides
        return ValueColumn(decided, bad, len(values))

    def _error_text(self, answer: Any) -> str:
        if type(answer) is not ErrorValue:
            return f"{self._origin}: element {INDEX_PLACEHOLDER}: {TypeMismatch(answer, 'bool')}"
        prefix = "" if answer.sealed else f"{self._origin}: "
        return f"{prefix}element {INDEX_PLACEHOLDER}: {answer.text}"

    def concat_columns(self, columns: list[ValueColumn]) -> ValueColumn:
        """See `part.Accumulator`."""
        bad = concat_invalid(columns, [len(column.values) for column in columns])
        return ValueColumn(np.concatenate([column.values for column in columns]), bad)

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> AnyAllState:
        """See `part.Accumulator`."""
        decided = np.full(count, _NEVER)
        deciding = np.flatnonzero(column.values)[::-1]
        decided[groups[deciding]] = arrivals[deciding]  # the last that is put in is the first
        return AnyAllState(decided, find_invalid(column, groups, arrivals, last=False))

    def merge_states(
        self, states: list[AnyAllState], where: list[Ints], before: list[Ints], count: int
    ) -> AnyAllState:
        """See `part.Accumulator`."""
        decided = np.full(count, _NEVER)
        for state, numbers in zip(states, where, strict=True):
            decided[numbers] = np.minimum(decided[numbers], state.decided_at)
        bad = merge_invalid([state.invalid for state in states], where, before, last=False)
        return AnyAllState(decided, bad)

    def encode_state(self, state: AnyAllState) -> bytes:
        """See `part.Accumulator`."""
        known = state.decided_at != _NEVER
        arrivals = state.decided_at[known]
        first = int(arrivals.min()) if len(arrivals) else 0
        start = first.to_bytes(8, "little", signed=True)
        flags = np.packbits(known).tobytes()
        size = len(known).to_bytes(8, "little")
        bad = encode_invalid(state.invalid) if state.invalid else b""
        return pack_strings([size + flags, start + pack_ints(arrivals - first), bad])

    def decode_state(self, data: bytes, shift: int) -> AnyAllState:
        """See `part.Accumulator`."""
        flags, arrivals, bad = unpack_strings(data)
        size = int.from_bytes(flags[:8], "little")
        known = np.unpackbits(np.frombuffer(flags, np.uint8, offset=8), count=size).astype(bool)
        decided = np.full(size, _NEVER)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        decided[known] = unpack_ints(arrivals[8:]) + first
        return AnyAllState(decided, decode_invalid(bad, shift) if bad else {})

    def result_of(self, state: AnyAllState, group: int) -> bool:
        """See `part.Accumulator`."""
        decided = int(state.decided_at[group])
        spoiler = state.invalid.get(group)
        if spoiler is not None and spoiler.arrival < decided:
            raise RecordedError(insert_index(spoiler.text, spoiler.place), sealed=True)
        return self._decides if decided != _NEVER else not self._decides
