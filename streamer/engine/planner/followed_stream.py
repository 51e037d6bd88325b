"""A stream whose micro-batches another one repeats: the same input, at the same times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from streamer.core.errors import StreamerError
from streamer.engine.planner.offset_log import (
    is_committed,
    newest_number,
    read_newest_planned,
    read_planned,
)
from streamer.engine.planner.planner_channels import (
    DriverHints,
    MicroBatchOffset,
    next_aggregates_from,
)
from streamer.sdk.input.replayable import Offset

FOLLOW_INTERVAL_S: Final = 0.1
"""Seconds between two polls of the log of a stream that is followed."""


class LeftBehindError(StreamerError):
    """The followed stream no longer has the micro-batch that is to be repeated."""


@dataclass(frozen=True, slots=True)
class FollowedStream:
    """A stream that is followed, and the one that follows it.

    Attributes:
        log: Spark's checkpoint of the stream that is followed.
        own: Spark's checkpoint of the one that follows; micro-batches have the same numbers.
    """

    log: Path
    own: Path

    def plan_next(
        self, before: MicroBatchOffset, aggregation_id: str, hints: DriverHints
    ) -> MicroBatchOffset | None:
        """Return the next micro-batch that the stream has committed; None before it has.

        All decisions are those of the stream, but for the mapping that windows aggregate for:
        that is the follower's own.

        Args:
            before: where the micro-batch before it ends.
            aggregation_id: the identity of the follower's mapping.
            hints: those of the follower's driver.

        Raises:
            LeftBehindError: Spark has deleted its offsets meanwhile.
        """
        planned = newest_number(self.own / "offsets")
        number = 0 if planned is None else planned + 1
        if not is_committed(self.log, number):
            newest = newest_number(self.log / "commits")
            if newest is not None and newest > number:
                raise LeftBehindError(
                    f"micro-batch {number} is no longer in {self.log}: the stream is at {newest}"
                )
            return None
        try:
            offset = read_planned(self.log, number, has_kafka=False).offset
        except FileNotFoundError:
            raise LeftBehindError(f"micro-batch {number} is no longer in {self.log}") from None
        aggregates_from = next_aggregates_from(
            before.aggregates_from, aggregation_id, hints.newest_end, hints.has_newest_end
        )
        return replace(offset, aggregates_from=aggregates_from)


def read_follower_position(follower: str) -> Offset | None:
    """Return the position in the input up to which a follower needs nothing any more.

    Args:
        follower: Spark's checkpoint of the follower.

    Returns:
        The position; None while the follower has committed no micro-batch.
    """
    try:
        committed = read_newest_planned(Path(follower), "commits", has_kafka=False)
    except (OSError, StreamerError):
        return None
    return None if committed is None else committed.offset.data
