"""Buckets by the hash of a key, whose number grows one by one (linear hashing).

One bucket is split for each one that is added, so that no micro-batch writes all of them anew.
"""

from __future__ import annotations

import zlib
from typing import Final

_HASH_FACTOR: Final = 0x9E3779B1
"""Spreads the bits of a key's checksum, of which the lowest have chosen the shard."""


def bucket_of(key: bytes, bucket_count: int) -> int:
    """Return the number of the bucket of a key.

    >>> [bucket_of(b"joe", count) for count in (1, 2, 3, 4)]
    [0, 0, 2, 2]
    """
    hashed = (zlib.crc32(key) * _HASH_FACTOR & 0xFFFFFFFF) >> 8
    whole = 1 << (bucket_count.bit_length() - 1)
    number = hashed & (2 * whole - 1)
    return number if number < bucket_count else number & (whole - 1)


def split_source(new: int) -> int:
    """Return the number of the bucket that gives a part of its keys to a new one.

    >>> [split_source(new) for new in (1, 2, 3, 4)]
    [0, 0, 1, 0]
    """
    return new - (1 << (new.bit_length() - 1))
