"""Exact sums of floats for many groups at once: sums of their digits to base 2 ** 32."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamer.bloblang.runtime.moments import SQUARE_UNIT_BITS, UNIT_BITS
from streamer.window.settings.int_codec import Ints

_DIGIT_BITS: Final = 32
_DIGIT_MASK: Final = (1 << _DIGIT_BITS) - 1
_MANTISSA_BITS: Final = 53
_HALF_BITS: Final = 26
_MAX_EXACT: Final = 1 << 53
_CARRY_LIMIT: Final = 1 << 53
"""Sums of digits stay below it, so that a thousand of them can be added."""

_HEADER_SIZE: Final = 4


class DigitSums(NamedTuple):
    """A sum by group, as the sums of digits of any size and sign.

    Attributes:
        first: the place of the first row's digits: they count for 2 ** (32 * first) units.
        rows: by place from `first` on, and group, a sum of digits (int64).
    """

    first: int
    rows: NDArray[np.int64]

    def total_of(self, group: int) -> int:
        """Return the sum of a group, in units."""
        digits = self.rows[:, group].tolist()
        return sum(
            digit << _DIGIT_BITS * (self.first + place) for place, digit in enumerate(digits)
        )

    def take(self, indices: Ints) -> DigitSums:
        """Return the sums of some groups."""
        return DigitSums(self.first, self.rows[:, indices])

    def encode(self) -> bytes:
        """Return bytes: of each row all first bytes of numbers, all second bytes and so on."""
        header = self.first.to_bytes(2, "little") + len(self.rows).to_bytes(2, "little")
        planes = np.ascontiguousarray(self.rows).view(np.uint8)
        planes = planes.reshape(len(self.rows), -1, 8).transpose(0, 2, 1)
        return header + planes.tobytes()


def decode_sums(data: bytes) -> DigitSums:
    """Return the sums that were encoded."""
    first, length = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:4], "little")
    planes = np.frombuffer(data, np.uint8, offset=_HEADER_SIZE).reshape(length, 8, -1)
    rows = np.ascontiguousarray(planes.transpose(0, 2, 1)).view(np.int64)
    return DigitSums(first, rows.reshape(length, -1))


def sum_numbers(numbers: NDArray[np.float64], groups: Ints, count: int) -> DigitSums:
    """Return the sum of each group, in units of 2 ** -UNIT_BITS; all numbers are finite."""
    whole = _sum_small_integers(numbers, groups, count, UNIT_BITS)
    if whole is not None:
        return whole
    mantissas, shifts, groups = _split_floats(numbers, groups)
    return _sum_products([(mantissas, shifts + UNIT_BITS)], groups, count)


def sum_squares(numbers: NDArray[np.float64], groups: Ints, count: int) -> DigitSums:
    """Return the sum of each group's squares, in units of 2 ** -SQUARE_UNIT_BITS."""
    if not len(numbers) or np.abs(numbers).max() < 1 << _HALF_BITS:
        whole = _sum_small_integers(numbers * numbers, groups, count, SQUARE_UNIT_BITS)
        # A square may be whole though its number is not, once it is rounded.
        if whole is not None and not np.any(numbers % 1):
            return whole
    mantissas, shifts, groups = _split_floats(numbers, groups)
    high, low = mantissas >> _HALF_BITS, mantissas & ((1 << _HALF_BITS) - 1)
    units = 2 * shifts + SQUARE_UNIT_BITS
    products = [
        (high * high, units + 2 * _HALF_BITS),
        (high * low, units + _HALF_BITS + 1),
        (low * low, units),
    ]
    return _sum_products(products, groups, count)


def merge_sums(sums: list[DigitSums], where: list[Ints], count: int) -> DigitSums:
    """Return the sums of `count` groups from partial ones.

    Args:
        sums: the partial sums.
        where: by partial sum, the new number of each of its groups.
        count: how many groups there are.
    """
    first = min(each.first for each in sums)
    end = max(each.first + len(each.rows) for each in sums)
    rows = np.zeros((end - first, count), np.int64)
    for each, numbers in zip(sums, where, strict=True):
        for place, digits in enumerate(each.rows, each.first - first):
            rows[place, numbers] += digits
    return DigitSums(first, _carry(rows))


def _sum_small_integers(
    numbers: NDArray[np.float64], groups: Ints, count: int, unit_bits: int
) -> DigitSums | None:
    """Return the sums where all numbers are integers and floats hold every sum; else None."""
    most = float(np.abs(numbers).max()) if len(numbers) else 0.0
    if most * len(numbers) >= _MAX_EXACT or np.any(numbers % 1):
        return None
    sums = np.bincount(groups, numbers, count).astype(np.int64)
    return DigitSums(unit_bits // _DIGIT_BITS, sums.reshape(1, -1))


def _split_floats(
    numbers: NDArray[np.float64], groups: Ints
) -> tuple[NDArray[np.int64], Ints, Ints]:
    """Return of floats that are not 0 the integers, the powers of two and the groups."""
    some = np.flatnonzero(numbers)
    fractions, exponents = np.frexp(numbers[some])
    mantissas = np.ldexp(fractions, _MANTISSA_BITS).astype(np.int64)
    return mantissas, exponents.astype(np.int64) - _MANTISSA_BITS, groups[some]


def _sum_products(
    products: list[tuple[NDArray[np.int64], Ints]], groups: Ints, count: int
) -> DigitSums:
    """Return the sums of integers times powers of two, which are not negative, by group."""
    if not len(groups):
        return DigitSums(0, np.zeros((1, count), np.int64))
    first = min(int(shifts.min()) for _, shifts in products) // _DIGIT_BITS
    end = max(int(shifts.max()) for _, shifts in products) // _DIGIT_BITS + 3
    sums = np.zeros((end - first) * count, np.int64)
    for integers, shifts in products:
        sign = np.sign(integers)
        size = np.abs(integers).astype(np.uint64)
        spare = (shifts & (_DIGIT_BITS - 1)).astype(np.uint64)
        low = (size & np.uint64(_DIGIT_MASK)) << spare
        high = (size >> np.uint64(_DIGIT_BITS)) << spare
        at = (shifts // _DIGIT_BITS - first) * count + groups
        mask, bits = np.uint64(_DIGIT_MASK), np.uint64(_DIGIT_BITS)
        for digits in (low & mask, (low >> bits) + (high & mask), high >> bits):
            np.add.at(sums, at, digits.astype(np.int64) * sign)
            at = at + count
    return DigitSums(first, _carry(sums.reshape(-1, count)))


def _carry(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return digits of which none is so large that adding to it might exceed int64."""
    if np.abs(rows).max(initial=0) < _CARRY_LIMIT:
        return rows
    carried = np.zeros((len(rows) + 1, rows.shape[1]), np.int64)
    carried[:-1] = rows & _DIGIT_MASK
    carried[1:] += rows >> _DIGIT_BITS
    return carried
