"""Whether any, or all, values pass a test: the message that decides, and the first that fails."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from streamer.bloblang.compiler.element import AT
from streamer.bloblang.element import Failed, Question
from streamer.bloblang.errors import ToldError, TypeMismatch
from streamer.window.folds.part import (
    Bad,
    Column,
    Spoiler,
    bad_of,
    joined_bad,
    merged_bad,
    placed,
    read_bad,
    write_bad,
)
from streamer.window.ints import Ints, pack_ints, pack_strings, unpack_ints, unpack_strings

_NEVER: Final = np.iinfo(np.int64).max


class TestedState(NamedTuple):
    """By group, the arrival of the first message that decides; and the groups that are spoilt."""

    decided: Ints
    bad: Bad


class Tested:
    """`any` is decided by the first value that passes, `all` by the first that does not."""

    def __init__(self, decides: bool, origin: str, question: Question) -> None:
        """Take what decides, what error texts call the values, and the test."""
        self._decides = decides
        self._origin = origin
        self._question = question

    def column(self, values: list[Any]) -> Column:
        """See `part.Accumulator`; the column says which messages decide."""
        answers = self._question.answers(values)
        bad = []
        if set(map(type, answers)) != {bool}:
            for place, answer in enumerate(answers):
                if type(answer) is not bool:
                    bad.append(Spoiler(place, 0, self._fault(answer)))
                    answers[place] = not self._decides
        decided = np.array(answers, bool) == self._decides
        return Column(decided, bad, len(values))

    def _fault(self, answer: Any) -> str:
        if type(answer) is not Failed:
            return f"{self._origin}: element {AT}: {TypeMismatch(answer, 'bool')}"
        prefix = "" if answer.sealed else f"{self._origin}: "
        return f"{prefix}element {AT}: {answer.text}"

    def gathered(self, columns: list[Column]) -> Column:
        """See `part.Accumulator`."""
        bad = joined_bad(columns, [len(column.values) for column in columns])
        return Column(np.concatenate([column.values for column in columns]), bad)

    def state(self, column: Column, groups: Ints, count: int, arrivals: Ints) -> TestedState:
        """See `part.Accumulator`."""
        decided = np.full(count, _NEVER)
        chosen = np.flatnonzero(column.values)[::-1]
        decided[groups[chosen]] = arrivals[chosen]  # the last that is put in is the first
        return TestedState(decided, bad_of(column, groups, arrivals, last=False))

    def merged(
        self, states: list[TestedState], where: list[Ints], before: list[Ints], count: int
    ) -> TestedState:
        """See `part.Accumulator`."""
        decided = np.full(count, _NEVER)
        for state, numbers in zip(states, where, strict=True):
            decided[numbers] = np.minimum(decided[numbers], state.decided)
        bad = merged_bad([state.bad for state in states], where, before, last=False)
        return TestedState(decided, bad)

    def write(self, state: TestedState) -> bytes:
        """See `part.Accumulator`."""
        known = state.decided != _NEVER
        arrivals = state.decided[known]
        first = int(arrivals.min()) if len(arrivals) else 0
        start = first.to_bytes(8, "little", signed=True)
        flags = np.packbits(known).tobytes()
        size = len(known).to_bytes(8, "little")
        bad = write_bad(state.bad) if state.bad else b""
        return pack_strings([size + flags, start + pack_ints(arrivals - first), bad])

    def read(self, data: bytes, shift: int) -> TestedState:
        """See `part.Accumulator`."""
        flags, arrivals, bad = unpack_strings(data)
        size = int.from_bytes(flags[:8], "little")
        known = np.unpackbits(np.frombuffer(flags, np.uint8, offset=8), count=size).astype(bool)
        decided = np.full(size, _NEVER)
        first = int.from_bytes(arrivals[:8], "little", signed=True) + shift
        decided[known] = unpack_ints(arrivals[8:]) + first
        return TestedState(decided, read_bad(bad, shift) if bad else {})

    def value(self, state: TestedState, group: int) -> bool:
        """See `part.Accumulator`."""
        decided = int(state.decided[group])
        spoiler = state.bad.get(group)
        if spoiler is not None and spoiler.arrival < decided:
            raise ToldError(placed(spoiler.text, spoiler.place), sealed=True)
        return self._decides if decided != _NEVER else not self._decides
