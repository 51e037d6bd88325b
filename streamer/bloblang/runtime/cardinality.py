"""The number of distinct values, estimated: HyperLogLog with 4,096 registers.

A value's hash chooses a register, which keeps the longest run of zeros that the rest of a hash
began with. Registers of two parts merge to the greater of each: the answer depends neither on the
order of the values nor on how they were divided. The estimate is Ertl's ("New cardinality
estimation algorithms for HyperLogLog sketches", 2017, section 4), which needs no tables of
measured corrections. Its standard error is 1.04 / sqrt(4096) = 1.6 %; few values are told exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from xxhash import xxh64_intdigest

from streamer.bloblang.errors import TypeMismatch
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.core.timestamps import Timestamp

INDEX_BITS: Final = 12
RANK_BITS: Final = 64 - INDEX_BITS
"""Of a hash, what is left for the run of zeros."""

_REGISTERS: Final = 1 << INDEX_BITS
_NUMBER_MARK: Final = b"\x00n"


def hash_value(value: Any) -> int:
    """Return 64 bits that are equal for values that `unique` takes for one.

    Raises:
        TypeMismatch: it is neither text nor number; a time is its text.
    """
    kind = type(value)
    if kind is str:
        return xxh64_intdigest(value.encode("utf-8", "surrogateescape"))
    if kind is bytes:
        return xxh64_intdigest(value)
    if kind in NUMBER_TYPES:
        return xxh64_intdigest(_NUMBER_MARK + _spell_number(value))
    if kind is Timestamp:
        return xxh64_intdigest(str(value).encode())
    raise TypeMismatch(value, "string", "number")


def hash_values(values: list[Any]) -> list[int]:
    """Return what `hash_value` does for each value; errors are the same."""
    if set(map(type, values)) == {str}:
        return [xxh64_intdigest(text.encode("utf-8", "surrogateescape")) for text in values]
    return list(map(hash_value, values))


def _spell_number(value: Any) -> bytes:
    number = value if isinstance(value, int) else float(value)
    if type(number) is float and not number.is_integer():
        return repr(number).encode()
    return b"%d" % int(number)


def find_register(hashed: int) -> tuple[int, int]:
    """Return a hash's register and its rank there: the place of the first one, from 1."""
    rest = hashed & ((1 << RANK_BITS) - 1)
    return hashed >> RANK_BITS, RANK_BITS - rest.bit_length() + 1


def estimate_distinct(ranks: Iterable[int]) -> int:
    """Return about how many values there were.

    Args:
        ranks: the largest of each register that has one.
    """
    counts = Counter(ranks)
    empty = _REGISTERS - sum(counts.values())
    total = _REGISTERS * _tau(1 - counts[RANK_BITS + 1] / _REGISTERS)
    for rank in range(RANK_BITS, 0, -1):
        total = (total + counts[rank]) / 2
    total += _REGISTERS * _sigma(empty / _REGISTERS)
    return round(_REGISTERS * _REGISTERS / (2 * math.log(2)) / total)


def _sigma(share: float) -> float:
    """Return the correction for empty registers."""
    if share == 1:
        return math.inf
    factor, total, before = 1.0, share, -1.0
    while total != before:
        share *= share
        before = total
        total += share * factor
        factor += factor
    return total


def _tau(share: float) -> float:
    """Return the correction for registers that cannot count further."""
    if share in (0, 1):
        return 0.0
    factor, total, before = 1.0, 1 - share, -1.0
    while total != before:
        share = math.sqrt(share)
        before = total
        factor /= 2
        total -= (1 - share) ** 2 * factor
    return total / 3
