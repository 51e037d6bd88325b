"""Percentiles of numbers: exact ones of all numbers, and approximate ones of a histogram.

The histogram's buckets are those of HdrHistogram and of OpenTelemetry's exponential histograms:
128 to each power of two. A bucket's number is the leading bits of its floats, so no logarithm is
rounded, and counts are added: the answer depends neither on the order of the numbers nor on how
they were divided. That is why it is not a sketch such as t-digest, whose answer depends on the
order, or KLL, which throws dice: a replay would answer otherwise.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Final, NamedTuple

BUCKET_SHIFT: Final = 45
"""The bits of a float that its bucket does not tell: 7 of the 52 behind the point are left."""

NAN_BUCKET: Final = -(1 << 18)
"""The bucket of what is not a number: below all others."""

LEAST_BUCKET: Final = 1 << 7
"""Of the least normal float; smaller ones count as 0."""

_FLOAT: Final = struct.Struct("<d")
_BITS: Final = struct.Struct("<q")


class SortedNumbers(NamedTuple):
    """Numbers in ascending order.

    Attributes:
        values: the numbers, one at least; what is not a number comes first.
    """

    values: Sequence[float]

    def interpolate(self, fraction: float) -> float:
        """Return the percentile as SQL's PERCENTILE_CONT does: on the line between two numbers.

        Args:
            fraction: from 0, the least number, to 1, the greatest.
        """
        place = _exact(fraction) * (len(self.values) - 1)
        below = math.floor(place)
        low, high = self.values[below], self.values[math.ceil(place)]
        # The difference of two infinities is no number, and that of large numbers is infinite.
        share = float(place - below)
        return low if low == high else low * (1 - share) + high * share

    def choose(self, fraction: float) -> float:
        """Return the percentile as SQL's PERCENTILE_DISC does: the first number that is enough.

        That is the first up to which there is the fraction of all numbers.
        """
        return self.values[_rank(fraction, len(self.values)) - 1]


class BucketCounts(NamedTuple):
    """A histogram of numbers.

    Attributes:
        buckets: in ascending order, one at least.
        counts: by bucket, how many numbers it has.
    """

    buckets: Sequence[int]
    counts: Sequence[int]

    def choose(self, fraction: float) -> float:
        """Return the edge, on the side of 0, of the bucket that has the number of `choose`."""
        reached = list(accumulate(self.counts))
        rank = _rank(fraction, reached[-1])
        at = next(at for at, count in enumerate(reached) if count >= rank)
        return edge_of(self.buckets[at])


def sort_numbers(numbers: Iterable[float]) -> SortedNumbers:
    """Return numbers in ascending order, what is not a number first."""
    # Adding zero makes one zero of the two that floats have.
    same_zeros = [number + 0.0 for number in numbers]
    # Without a key it takes a tenth of the time.
    key = ascending_key if any(map(math.isnan, same_zeros)) else None
    return SortedNumbers(sorted(same_zeros, key=key))


def ascending_key(number: float) -> tuple[bool, float]:
    """Return what numbers are sorted by: what is not a number comes first."""
    return number == number, number


def count_buckets(numbers: Iterable[float]) -> BucketCounts:
    """Return the histogram of some numbers."""
    counts = Counter(map(bucket_of, numbers))
    buckets = sorted(counts)
    return BucketCounts(buckets, [counts[bucket] for bucket in buckets])


def bucket_of(number: float) -> int:
    """Return the number of a float's bucket; they ascend as floats do.

    Example:
        >>> bucket_of(1.0) == bucket_of(1.007), bucket_of(1.0) == bucket_of(1.008)
        (True, False)
    """
    if number != number:
        return NAN_BUCKET
    bits: int = _BITS.unpack(_FLOAT.pack(abs(number)))[0] >> BUCKET_SHIFT
    if bits < LEAST_BUCKET:
        return 0
    return -bits if number < 0 else bits


def edge_of(bucket: int) -> float:
    """Return the float nearest to 0 in a bucket: by at most 1/128 less than any other in it."""
    if bucket == NAN_BUCKET:
        return math.nan
    edge: float = _FLOAT.unpack(_BITS.pack(abs(bucket) << BUCKET_SHIFT))[0]
    return -edge if bucket < 0 else edge


def _rank(fraction: float, count: int) -> int:
    return max(math.ceil(_exact(fraction) * count), 1)


def _exact(fraction: float) -> Fraction:
    """Return a fraction as it is written: 0.07 of 100 are 7, though the float is a little more."""
    return Fraction(repr(float(fraction)))
