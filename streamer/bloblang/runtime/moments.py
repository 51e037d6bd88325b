"""Exact sums of floats and of their squares, so that means do not depend on the order of numbers.

A float is an integer times a power of two. Sums are kept as integers, in units that every float,
and every square of one, is a multiple of; they are rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

UNIT_BITS: Final = 1152
"""Sums are in units of 2 to the minus this; the least float is 2 ** 52 times 2 ** -1126."""

SQUARE_UNIT_BITS: Final = 2 * UNIT_BITS

_ROOT_BITS: Final = 128
"""So many bits an integer has at least before its root is taken: more than a float keeps."""


@dataclass(frozen=True, slots=True)
class Moments:
    """The count and the exact sums of some numbers.

    Attributes:
        count: how many there are.
        total: the sum of those that are finite, in units of 2 ** -UNIT_BITS.
        squares: the sum of their squares, in units of 2 ** -SQUARE_UNIT_BITS; 0 where unwanted.
        special: the sum of the others, infinite or not a number; 0 without any.
    """

    count: int
    total: int
    squares: int
    special: float

    def add(self, number: float, squared: bool) -> Moments:
        """Return the moments with one more number, and with its square if that is wanted."""
        if number - number != 0:
            special = self.special + number
            return Moments(self.count + 1, self.total, self.squares, special)
        numerator, denominator = number.as_integer_ratio()
        units = numerator << (UNIT_BITS + 1 - denominator.bit_length())
        squares = self.squares + units * units if squared else 0
        return Moments(self.count + 1, self.total + units, squares, self.special)

    def merge(self, other: Moments) -> Moments:
        """Return what the numbers of both come to."""
        return Moments(
            self.count + other.count,
            self.total + other.total,
            self.squares + other.squares,
            self.special + other.special,
        )

    def mean(self) -> float:
        """Return the sum, rounded to a float, divided by the count."""
        if self.special:
            return self.special
        try:
            return self.total / (1 << UNIT_BITS) / self.count
        except OverflowError:
            return self.total / (self.count << UNIT_BITS)

    def deviation(self, sample: bool) -> float:
        """Return the standard deviation; that of a `sample` is divided by the count less one."""
        if self.special:
            return math.nan
        scaled = self.count * self.squares - self.total * self.total
        divisor = self.count * (self.count - 1 if sample else self.count)
        return _square_root(scaled, divisor, SQUARE_UNIT_BITS)


NO_MOMENTS: Final = Moments(0, 0, 0, 0.0)


def mean_of(numbers: list[float]) -> float:
    """Return the mean of some numbers, one at least."""
    try:
        # It adds exactly, too.
        return math.fsum(numbers) / len(numbers)
    except (OverflowError, ValueError):
        return moments_of(numbers, squared=False).mean()


def moments_of(numbers: Iterable[float], squared: bool) -> Moments:
    """Return what numbers come to; with their squares if these are wanted."""
    moments = NO_MOMENTS
    for number in numbers:
        moments = moments.add(number, squared)
    return moments


def _square_root(numerator: int, denominator: int, unit_bits: int) -> float:
    """Return the root of a fraction in units of 2 ** -unit_bits, which is even."""
    if not numerator:
        return 0.0
    shift = max(2 * _ROOT_BITS + denominator.bit_length() - numerator.bit_length(), 0)
    shift += shift & 1
    root = math.isqrt((numerator << shift) // denominator)
    spare = max(root.bit_length() - _ROOT_BITS, 0)
    return math.ldexp(root >> spare, spare - (shift + unit_bits) // 2)
