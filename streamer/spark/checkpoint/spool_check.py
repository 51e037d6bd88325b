"""Checks, when a stream begins, of received messages that the checkpoint does not have yet."""

from __future__ import annotations

from typing import Any

from streamer.connectors.spool.damage import check_positions, check_stores, skip_damaged_marks
from streamer.core.log_format import LogLine
from streamer.sdk.input.input_context import InputContext, open_input
from streamer.sdk.input.replayable import ReplayableSource
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.generations import read_planned_position


def open_checked_input(
    checkpoint: Checkpoint,
    source: Any,
    context: InputContext,
    log: LogLine,
) -> ReplayableSource:
    """Open a stream's input, and see that what it has received is there and can be read.

    Args:
        checkpoint: the stream's, which says whether damage is passed over.
        source: the input before it is opened.
        context: where it is opened.
        log: takes log lines.

    Raises:
        StreamerError: something is damaged, and not to be passed over.
    """
    spool, skips = checkpoint.spool, checkpoint.should_skip_damaged
    # What another machine has received is not expected here.
    if (
        checkpoint.has_current_local_state
        and (position := read_planned_position(checkpoint)) is not None
    ):
        check_positions(spool, position, skips, log)
    with skip_damaged_marks(spool, skips):
        replayable = open_input(source, context)
    check_stores(spool, skips, log, context.count)
    return replayable
