"""A bit for each message that waits in a join: whether it has found a match.

The bits are kept by arrival number, in blocks, so that a micro-batch rewrites only the blocks of
the messages that it matched or freed, however many messages wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from streamer.window.settings.int_codec import Bools, Ints
from streamer.window.state.layout import MATCHED_BITS_SEQ, MATCHED_BITS_VERSION
from streamer.window.state_store import StateStore, check_format

_BLOCK_BITS: Final = 17
"""Binary logarithm of the number of arrival numbers in a block."""


class _Block:
    """The bits of a block, and whether it is stored."""

    __slots__ = ("bits", "stored", "changed")

    def __init__(self, data: bytes | None) -> None:
        self.bits: Bools = np.zeros(1 << _BLOCK_BITS, np.bool_)
        self.stored = data is not None
        self.changed = False
        if data is not None:
            check_format("the list of what a join has matched", data[0], (MATCHED_BITS_VERSION,))
            stored_bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=1))
            self.bits[: len(stored_bits)] = stored_bits


class MatchedBits:
    """The bits of the messages of both sides, which share one sequence of arrival numbers."""

    def __init__(self, store: StateStore) -> None:
        """Open the bits in a shard's state."""
        self._store = store
        self._blocks: dict[int, _Block] = {}

    def add(self, arrivals: Ints) -> None:
        """Mark messages as matched, in any order.

        Raises:
            StreamerError: another version wrote a block.
        """
        for block, places, _ in self._split_by_block(arrivals):
            block.bits[places] = True
            block.changed = True

    def pop(self, arrivals: Ints) -> Bools:
        """Forget messages; return for each whether it was matched.

        Raises:
            StreamerError: another version wrote a block.
        """
        matched = np.zeros(len(arrivals), np.bool_)
        for block, places, here in self._split_by_block(arrivals):
            was_matched = block.bits[places]
            matched[here] = was_matched
            if was_matched.any():
                block.bits[places] = False
                block.changed = True
        return matched

    def write(self) -> None:
        """Write the blocks that have changed."""
        for number, block in self._blocks.items():
            if not block.changed:
                continue
            data = np.packbits(block.bits).tobytes().rstrip(b"\0")
            if data:
                self._store.put(number, MATCHED_BITS_SEQ, bytes([MATCHED_BITS_VERSION]) + data)
            elif block.stored:
                self._store.delete(number, MATCHED_BITS_SEQ)
        self._blocks.clear()

    def _split_by_block(self, arrivals: Ints) -> Iterator[tuple[_Block, Ints, Bools]]:
        """Give each block with the indices of its messages in it, and their mask in `arrivals`."""
        numbers = arrivals >> _BLOCK_BITS
        for number in np.unique(numbers).tolist():
            here = numbers == number
            block = self._blocks.get(number)
            if block is None:
                block = self._blocks[number] = _Block(self._store.get(number, MATCHED_BITS_SEQ))
            yield block, arrivals[here] & ((1 << _BLOCK_BITS) - 1), here
