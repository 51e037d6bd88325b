"""The interface of whatever receives the results of a stream's windows while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streamer.engine.report.result_frame import Frame


class WindowTap(Protocol):
    """Receives the results of windows, micro-batch by micro-batch, in the driver's thread.

    It raises nothing, and takes no longer than it must: the stream waits for it.
    """

    def begin_batch(self, number: int) -> None:
        """Note that a micro-batch is planned, and that the one before it is committed.

        Args:
            number: its number in Spark's checkpoint.
        """

    def take_results(self, batch: int, frames: Sequence[Frame]) -> None:
        """Take the results of a micro-batch that the outputs have; it may come again.

        Args:
            batch: its number among those of all generations.
            frames: all that its tasks made.
        """
