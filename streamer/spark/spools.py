"""What inputs have received and the checkpoint has not: looked at when a stream begins."""

from __future__ import annotations

from typing import Any

from streamer.landing.damage import LogLine, check_places, check_stores, marks_skipped
from streamer.source.opening import Room, opened
from streamer.source.replayable import Replayable
from streamer.spark.checkpoint import Checkpoint
from streamer.spark.generations import planned_offset


def open_checked(
    checkpoint: Checkpoint,
    source: Any,
    room: Room,
    log: LogLine,
) -> Replayable:
    """Open a stream's input, and see that what it has received is there and can be read.

    Args:
        checkpoint: the stream's, which says whether damage is passed over.
        source: the input before it is opened.
        room: where it is opened.
        log: takes log lines.

    Raises:
        StreamerError: something is damaged, and not to be passed over.
    """
    spool, skips = checkpoint.spool, checkpoint.skips_damaged
    # What another machine has received is not expected here.
    if checkpoint.has_stayed and (offset := planned_offset(checkpoint)) is not None:
        check_places(spool, offset, skips, log)
    with marks_skipped(spool, skips):
        found = opened(source, room)
    check_stores(spool, skips, log, room.count)
    return found
