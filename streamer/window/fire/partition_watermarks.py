"""The stream clock before each piece of a micro-batch: the largest event time seen by then.

It is the largest of all earlier micro-batches and of all earlier pieces of the same partition: what
other partitions have in the same micro-batch has no order to it, and counts when that is over.

Behind other windows it is what their results may not be earlier than: each shard of theirs says so
after a micro-batch, and the least counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamer.core.errors import StreamerError
from streamer.window.contract import PIECE_BITS, ClockHolder, UpstreamInfo
from streamer.window.fire.step_io import Piece


class PartitionWatermarks:
    """The clocks of one micro-batch.

    Attributes:
        watermark_after: the clock after it; None when there never was a message.
        holder: the source that the clock waits for: None, since it waits for none.
    """

    holder: ClockHolder | None = None

    def __init__(
        self, pieces: Iterable[Piece], clock: int | None, upstream: UpstreamInfo | None = None
    ) -> None:
        """Follow the pieces, which are in order.

        Args:
            pieces: what became of the clock in each piece; several may say the same.
            clock: the one before the micro-batch; None when there never was a message.
            upstream: of the windows before these; None behind the input.
        """
        self._before: dict[int, int | None] = {}
        self._partitions: dict[int, bytes] = {}
        here: dict[bytes, int] = {}
        self.watermark_after = clock
        if upstream is not None:
            self.watermark_after = _later_time(clock, upstream.time)
        for first, newest, partition in pieces:
            number = first >> PIECE_BITS
            self._partitions[number] = partition
            if upstream is not None:
                self._before[number] = clock
                continue
            self._before[number] = _later_time(clock, here.get(partition))
            here[partition] = max(newest, here.get(partition, newest))
            self.watermark_after = _later_time(self.watermark_after, newest)

    def watermark_before(self, arrival: int) -> int | None:
        """Return the clock before the piece that a message is in.

        Raises:
            StreamerError: nothing was told of the piece.
        """
        return self._before[self._piece_number(arrival)]

    def partition_of(self, arrival: int) -> bytes:
        """Return the name of the partition that a message is from.

        Raises:
            StreamerError: nothing was told of the message's piece.
        """
        return self._partitions[self._piece_number(arrival)]

    def next_idle(self) -> int | None:
        """Return when a source is waited for no more: None, since none is."""
        return None

    def _piece_number(self, arrival: int) -> int:
        number = arrival >> PIECE_BITS
        if number not in self._before:
            raise StreamerError(
                f"a window shard did not get the clock of piece {number}: this is a bug in the "
                "program; the micro-batch is not lost, a restart replays it"
            )
        return number


def _later_time(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
