"""State on this machine of a checkpoint elsewhere: logged at the start, and checked."""

from __future__ import annotations

from streamer.core.log_format import LogLine
from streamer.plan import Plan
from streamer.plan.component_lookup import flatten_outputs
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError


def check_local_state(checkpoint: Checkpoint, plan: Plan, log: LogLine) -> None:
    """Warn of state that other machines do not see; check that this machine has it.

    Args:
        checkpoint: the stream's, whose input has been opened.
        plan: the stream's.
        log: takes log lines.

    Raises:
        CheckpointError: what the input has received is on the machine that ran before.
    """
    if not checkpoint.is_remote:
        return
    fields = {"directory": str(checkpoint.directory)}
    if next(checkpoint.spool.rglob("*.seg"), None) is not None:
        if checkpoint.is_resumable and not checkpoint.has_current_local_state:
            raise CheckpointError(
                f"the checkpoint {checkpoint} belongs to another machine, which has on its disk "
                f"messages that the input {plan.input.name} has received and no sender repeats: "
                f"start it there, or name another checkpoint"
            )
        text = (
            "Received messages of the input wait on this machine; no other machine can continue "
            "with them"
        )
        log("WARN", text, {**fields, "path": plan.input.path})
    for output in flatten_outputs(plan.outputs, plan.resources):
        if output.name in ("file", "parquet"):
            text = (
                "This machine writes the files exactly once; another one that continues may repeat"
            )
            log("INFO", text, {**fields, "path": output.path})
    if plan.retention is not None:
        log("INFO", "Results for queries are kept on this machine alone", fields)
