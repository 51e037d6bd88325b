"""Segments of an input: the micro-batches that a stream would read, planned once and written down.

A segment lies between two offsets of the input. The plan of all of them is a file: a backfill that
is resumed has the same segments, though files have grown or messages have come meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from streamer.core.errors import StreamerError
from streamer.engine.planner.kafka_inputs import list_range_sources
from streamer.sdk.input.replayable import Limit, Offset, ReplayableSource

_POLL_INTERVAL_S: Final = 0.05
_MAX_SILENCE_S: Final = 60.0
"""Seconds without a message from an input that fetches what it reads, before it counts as ended."""


class Segment(NamedTuple):
    """A part of the input that is one micro-batch.

    Attributes:
        number: its place, from 0.
        start: where it begins.
        end: where it ends.
    """

    number: int
    start: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """The segments of an input.

    Attributes:
        offsets: the bounds: one more than there are segments.
        messages: about how many messages there are.
        is_ended: whether the input ends with the last segment.
        batch_time: the time of all micro-batches by the machine's clock, Unix ns.
    """

    offsets: tuple[Offset, ...]
    messages: int
    is_ended: bool
    batch_time: int

    @property
    def segments(self) -> list[Segment]:
        """The segments, in order."""
        bounds = pairwise(self.offsets)
        return [Segment(number, *bound) for number, bound in enumerate(bounds)]

    def to_fields(self) -> dict[str, Any]:
        """Return the plan as a JSON object."""
        return {
            "offsets": list(self.offsets),
            "messages": self.messages,
            "ended": self.is_ended,
            "time": self.batch_time,
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> SegmentPlan:
        """Return the plan that a JSON object describes."""
        return cls(tuple(fields["offsets"]), fields["messages"], fields["ended"], fields["time"])


def plan_segments(
    source: ReplayableSource,
    start: Offset,
    limit: Limit,
    should_stop: Callable[[], bool] = lambda: False,
) -> SegmentPlan:
    """Plan the segments from an offset to the end that the input has now.

    Args:
        source: the opened input.
        start: where the first one begins.
        limit: of one segment.
        should_stop: ends the wait for an input that fetches what it reads.

    Raises:
        StreamerError: the input gives nothing for a minute and does not end.
    """
    offsets, messages = [start], 0
    now, has_log = time.time_ns(), bool(list_range_sources(source))
    last_message_at = time.monotonic()
    while True:
        latest = source.latest_offset(offsets[-1], now, limit)
        if latest.waiting:
            previous = messages
            offsets.append(latest.offset)
            messages += min(latest.waiting, limit.messages)
            last_message_at = time.monotonic()
            assert messages > previous
        elif latest.offset != offsets[-1]:
            offsets[-1] = latest.offset  # it has passed what is empty
        if latest.is_ended or (has_log and not latest.has_more):
            return SegmentPlan(tuple(offsets), messages, latest.is_ended, now)
        if not latest.waiting:
            if should_stop() or time.monotonic() - last_message_at > _MAX_SILENCE_S:
                raise StreamerError(
                    f"the input has no end: nothing came for {_MAX_SILENCE_S:.0f} s; expected one "
                    "that ends, such as files, or Kafka"
                )
            time.sleep(_POLL_INTERVAL_S)
            now = time.time_ns()
