"""Means and standard deviations, from exact sums: the order of messages does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.errors import QueryError, UnplacedError
from streamer.bloblang.runtime.moments import NO_MOMENTS, Moments
from streamer.window.aggregate.accumulator import (
    InvalidByGroup,
    InvalidValue,
    ValueColumn,
    decode_invalid,
    encode_invalid,
    find_invalid,
    merge_invalid,
    take_by_group,
)
from streamer.window.aggregate.digit_sums import (
    DigitSums,
    decode_sums,
    merge_sums,
    sum_numbers,
    sum_squares,
)
from streamer.window.aggregate.number_columns import NumberColumnAccumulator, prepare_numbers
from streamer.window.aggregate.value_codec import dump_value, load_value
from streamer.window.settings.int_codec import (
    Ints,
    pack_ints,
    pack_strings,
    unpack_ints,
    unpack_strings,
)

MomentKind = Literal["avg", "stddev_pop", "stddev_samp"]
_MAX_JSON_INT: Final = 1 << 53


class MomentsState(NamedTuple):
    """`Moments` by group.

    Attributes:
        counts: how many numbers there are.
        totals: the sums of those that are finite.
        squares: the sums of their squares; None where these are not wanted.
        specials: the sums of the others; None where there is no other.
        invalid: the invalid values.
    """

    counts: Ints
    totals: DigitSums
    squares: DigitSums | None
    specials: NDArray[np.float64] | None
    invalid: InvalidByGroup


class MomentsAccumulator(NumberColumnAccumulator):
    """Keeps count, sum and sum of squares; a window's state is `Moments`, or `InvalidValue`."""

    empty_state = NO_MOMENTS

    def __init__(self, kind: MomentKind, origin: str) -> None:
        """Choose what to make of the sums; `origin` is what error texts call the values."""
        self._kind = kind
        self._squared = kind != "avg"
        self._origin = origin

    def make_state(
        self, column: ValueColumn, groups: Ints, count: int, arrivals: Ints
    ) -> MomentsState:
        """Sum up the numbers of each group."""
        invalid = find_invalid(column, groups, arrivals)
        counts = np.bincount(groups, minlength=count)
        numbers = column.values.astype(np.float64)
        finite = np.isfinite(numbers)
        specials = None
        if not finite.all():
            others = np.flatnonzero(~finite)
            specials = np.zeros(count)
            np.add.at(specials, groups[others], numbers[others])
            numbers, groups = numbers[finite], groups[finite]
        totals = sum_numbers(numbers, groups, count)
        squares = sum_squares(numbers, groups, count) if self._squared else None
        return MomentsState(counts, totals, squares, specials, invalid)

    def merge_states(
        self, states: list[MomentsState], where: list[Ints], before: list[Ints], count: int
    ) -> MomentsState:
        """Add the sums of each group's partial states."""
        counts = np.zeros(count, np.int64)
        specials = np.zeros(count)
        for state, numbers in zip(states, where, strict=True):
            counts[numbers] += state.counts
            if state.specials is not None:
                specials[numbers] += state.specials
        totals = merge_sums([state.totals for state in states], where, count)
        squares = [state.squares for state in states if state.squares is not None]
        return MomentsState(
            counts,
            totals,
            merge_sums(squares, where, count) if squares else None,
            None if all(state.specials is None for state in states) else specials,
            merge_invalid(states, where, before),
        )

    def take_groups(self, state: MomentsState, indices: Ints) -> MomentsState:
        """Return the state of some groups."""
        return MomentsState(
            state.counts[indices],
            state.totals.take(indices),
            None if state.squares is None else state.squares.take(indices),
            None if state.specials is None else state.specials[indices],
            take_by_group(state.invalid, indices),
        )

    def encode_state(self, state: MomentsState) -> bytes:
        """Write the counts, the sums, and what is not finite or invalid."""
        return pack_strings(
            [
                pack_ints(state.counts),
                state.totals.encode(),
                b"" if state.squares is None else state.squares.encode(),
                b"" if state.specials is None else state.specials.tobytes(),
                encode_invalid(state.invalid),
            ]
        )

    def decode_state(self, data: bytes, shift: int) -> MomentsState:
        """Read what `encode_state` wrote."""
        counts, totals, squares, specials, invalid = unpack_strings(data)
        return MomentsState(
            unpack_ints(counts),
            decode_sums(totals),
            decode_sums(squares) if squares else None,
            np.frombuffer(specials) if specials else None,
            decode_invalid(invalid, shift),
        )

    def result_of_group(self, state: MomentsState, group: int) -> float | None:
        """Return a group's mean or deviation."""
        if group in state.invalid:
            raise self._make_error(state.invalid[group])
        return self.result_of(
            Moments(
                int(state.counts[group]),
                state.totals.total_of(group),
                0 if state.squares is None else state.squares.total_of(group),
                0.0 if state.specials is None else float(state.specials[group]),
            )
        )

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return floats, and all else as `InvalidValue`."""
        return [
            value if type(value) is InvalidValue else float(value)
            for value in prepare_numbers(values)
        ]

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Add a number; the first invalid value stays."""
        if type(state) is InvalidValue:
            return state
        if type(value) is InvalidValue:
            return InvalidValue(place, arrival, value.text)
        return state.add(value, self._squared)

    def _merge_valid(self, one: Moments, other: Moments) -> Moments:
        return one.merge(other)

    def result_of(self, state: Any) -> float | None:
        """Return a window's mean or deviation; None for a sample of one number."""
        if type(state) is InvalidValue:
            raise self._make_error(state)
        moments: Moments = state
        if self._kind == "avg":
            return moments.mean()
        sample = self._kind == "stddev_samp"
        return None if sample and moments.count == 1 else moments.deviation(sample)

    def _dump_valid(self, state: Moments) -> Any:
        sums = [_dump_integer(state.total), _dump_integer(state.squares)]
        return [state.count, *sums, dump_value(state.special)]

    def _load_valid(self, plain: Any) -> Moments:
        count, total, squares, special = plain
        return Moments(count, _load_integer(total), _load_integer(squares), load_value(special))

    def _make_error(self, invalid: InvalidValue) -> QueryError:
        return UnplacedError(f"{self._origin}: index {invalid.place} of array: {invalid.text}")


def _dump_integer(number: int) -> list[Any]:
    """Return an integer of any size: what is left without its low zeros, and how many these are."""
    zeros = (number & -number).bit_length() - 1 if number else 0
    rest = number >> zeros
    return [rest if abs(rest) < _MAX_JSON_INT else str(rest), zeros]


def _load_integer(plain: list[Any]) -> int:
    rest, zeros = int(plain[0]), int(plain[1])
    return rest << zeros
