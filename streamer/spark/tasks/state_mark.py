"""The mark at the end of a shard's head in Spark's state: of which micro-batch all of it is.

Spark checks that a file of state is whole, and takes an older copy of it under the name of a newer
one for what it says. The head is written in every micro-batch, so the one that is read is of the
micro-batch before, or the state is not what was written last.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from streamer.core.errors import StreamerError

STATE_DAMAGE_PREFIX: Final = "the windows' state is damaged: "
"""Begins the text of an error about it."""

_MAGIC: Final = b"\x89SM1"
_MARK: Final = struct.Struct("<4sqI")


def add_mark(head: bytes, batch: int) -> bytes:
    """Return a head with the micro-batch that writes it."""
    return head + _MARK.pack(_MAGIC, batch, zlib.crc32(head, batch & 0xFFFFFFFF))


def split_mark(value: bytes) -> tuple[bytes, int | None]:
    """Return a head, and the micro-batch that has written it; None for one of version 0.1.

    Raises:
        StreamerError: it is not what was written.
    """
    head, mark = value[: -_MARK.size], value[-_MARK.size :]
    if not mark.startswith(_MAGIC):
        return value, None
    _, batch, checksum = _MARK.unpack(mark)
    if zlib.crc32(head, batch & 0xFFFFFFFF) != checksum:
        raise StreamerError(
            f"{STATE_DAMAGE_PREFIX}the head of a shard is not what was written; restore the "
            "checkpoint from a backup, or start again with another one"
        )
    return head, batch


def read_checked_head(value: bytes, now: int) -> bytes:
    """Return a head, as it was written in the micro-batch before.

    Args:
        value: what the state holds.
        now: the micro-batch in hand, which may have begun with a state that was brought to it.

    Raises:
        StreamerError: the state is of another micro-batch.
    """
    head, batch = split_mark(value)
    if batch is not None and batch not in (now - 1, now):
        raise StreamerError(
            f"{STATE_DAMAGE_PREFIX}a shard holds what was written in micro-batch {batch:,}, and "
            f"micro-batch {now:,} goes on from the one before it: one of its files is an older "
            f"copy; restore the checkpoint from a backup, or start again with another one"
        )
    return head
