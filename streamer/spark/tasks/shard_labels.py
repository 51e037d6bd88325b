"""Labels for shards that Spark puts into different partitions.

Spark hashes a grouping key into its shuffle partitions; the labels 0 and 1 may land in one, and
one core would do the work of two. So labels are chosen by their hash (Spark's documentation of
`hash`: Murmur3, x86, 32 bits, seed 42).
"""

from __future__ import annotations

from functools import cache

_MASK = 0xFFFFFFFF


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def spark_hash(value: int) -> int:
    """Return what Spark's `hash` gives for an `int` column, a signed 32-bit number."""
    block = value & _MASK
    block = _rotate(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    mixed = (_rotate(42 ^ block, 13) * 5 + 0xE6546B64) & _MASK
    mixed ^= 4
    mixed = (mixed ^ (mixed >> 16)) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ (mixed >> 13)) * 0xC2B2AE35 & _MASK
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed & 0x80000000 else mixed


@cache
def shard_labels(shards: int, buffers: int = 1) -> tuple[int, ...]:
    """Return one label for each shard; label i belongs to shuffle partition i of `shards`.

    Args:
        shards: how many shards a buffer has, and the shuffle partitions.
        buffers: how many buffers there are; the shards of the next one follow those of the one
            before, and their labels stay when there are more.
    """
    labels_by_partition: list[list[int]] = [[] for _ in range(shards)]
    label, missing = 0, shards * buffers
    while missing:
        labels = labels_by_partition[spark_hash(label) % shards]
        if len(labels) < buffers:
            labels.append(label)
            missing -= 1
        label += 1
    return tuple(labels[number] for number in range(buffers) for labels in labels_by_partition)
