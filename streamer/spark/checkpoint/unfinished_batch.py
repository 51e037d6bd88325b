"""The micro-batch that was planned and not committed, as tables may have it already.

What began windows anew would read its messages again, and a table cannot be cut back as a file can,
since others write to it too. So the plan that has begun it finishes it first.
"""

from __future__ import annotations

import sys

from streamer.core.errors import StreamerError
from streamer.engine.driver.table_commits import AheadWriter
from streamer.engine.driver.writers import TABLE_OUTPUTS, make_writers
from streamer.engine.planner.offset_log import newest_number
from streamer.plan import Plan
from streamer.plan.component_lookup import flatten_outputs
from streamer.spark.checkpoint.checkpoint import Checkpoint


def find_unfinished(checkpoint: Checkpoint) -> int | None:
    """Return the number of the micro-batch that is planned and not committed; None for none."""
    planned = newest_number(checkpoint.spark / "offsets")
    return None if planned == newest_number(checkpoint.spark / "commits") else planned


def find_table_ahead(checkpoint: Checkpoint, plan: Plan) -> str:
    """Return which table has a micro-batch that the checkpoint has not; empty for none.

    A table whose rows are replaced by key counts for none, since a row that comes again takes its
    own place. Nor does a table that cannot be reached.

    Args:
        checkpoint: no query runs on it.
        plan: what has run on it.
    """
    number = find_unfinished(checkpoint)
    if number is None:
        return ""
    batch = checkpoint.global_batch_number(number)
    if not _has_tables(plan):
        return ""
    writers = make_writers(
        plan, checkpoint.directory, sys.stdout.buffer, stream=lambda: checkpoint.identity
    )
    for writer in writers:
        if isinstance(writer, AheadWriter) and (table := writer.find_ahead(batch)):
            return table
    return ""


def _has_tables(plan: Plan) -> bool:
    """Return whether an output, or one inside of another, writes to a table."""
    outputs = flatten_outputs(plan.outputs, plan.resources)
    return any(output.name in TABLE_OUTPUTS for output in outputs)


def check_finished(checkpoint: Checkpoint, plan: Plan, change: str) -> None:
    """Check that no table has a micro-batch that the checkpoint has not.

    Args:
        checkpoint: no query runs on it.
        plan: what has run on it.
        change: what cannot be done before, in words.

    Raises:
        StreamerError: one has.
    """
    if table := find_table_ahead(checkpoint, plan):
        raise StreamerError(
            f"{table} has the newest micro-batch, which was not finished when the stream ended, "
            f"and its rows would come twice. Start the stream once, stop it, and {change}"
        )
