"""The hand-over of a backfill: a checkpoint from which the live stream goes on.

It has the position behind the last segment, and the windows that are open there. The record of the
checkpoint is written last, so that it is there as a whole or not at all.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.kafka.input.positions import list_kafka_ends
from streamer.core.errors import StreamerError
from streamer.engine.driver.shard_state_file import write_shard_count
from streamer.engine.planner.planner_channels import AggregatesFrom, MicroBatchOffset
from streamer.engine.results.layout import sync_entries
from streamer.plan import Plan
from streamer.sdk.input.replayable import Offset

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint

_GENERATION: Final = 1
"""Generation 0 is the beginning of the input; this one goes on from a position."""


def open_target(directory: str) -> Checkpoint:
    """Take the checkpoint that a live stream is to begin with.

    Raises:
        StreamerError: a stream has it already, or it is in use.
    """
    # Imported here: only a backfill that is handed over has a checkpoint.
    from streamer.spark.checkpoint.checkpoint import Checkpoint

    checkpoint = Checkpoint(directory, wait=0.0)
    if not checkpoint.is_new:
        checkpoint.close()
        raise StreamerError(
            f"--hand-over {directory}: a stream has this checkpoint already; expected a directory "
            "that is new or empty: name another one, or start that stream"
        )
    return checkpoint


def write_checkpoint(
    checkpoint: Checkpoint,
    plan: Plan,
    position: Offset,
    batch_time: int,
    states: Sequence[Path],
    inputs: Mapping[str, Any],
) -> None:
    """Write a checkpoint that goes on from a position with open windows.

    Args:
        checkpoint: a new one, held by this program.
        plan: of the live stream.
        position: what it reads next.
        batch_time: the time of the last micro-batch, Unix ns.
        states: directories with the state of the shards; none for streams without windows.
        inputs: what the inputs remember.

    Raises:
        StreamerError: it cannot be written.
    """
    record: dict[str, Any] = {
        "identity": uuid.uuid4().hex[:16],
        "fingerprint": dict(plan.fingerprint),
        "inputs": dict(inputs),
        "generation": _GENERATION,
    }
    identity = plan.aggregation_identity
    offset = MicroBatchOffset(
        position,
        batch_time=batch_time,
        aggregates_from=AggregatesFrom(identity or None, None),
    )
    record["begins_at"] = offset.to_start_fields(has_same_state=True)
    record["kafka_begins_at"] = list_kafka_ends(position)
    try:
        if states:
            seed = checkpoint.directory / f"seed-{_GENERATION}"
            _copy_states(states, seed, plan.shard_count)
            record["seed"] = _GENERATION
        checkpoint.write_record(record)
    except OSError as e:
        raise StreamerError(
            f"the checkpoint {checkpoint} cannot be written: {e}; free the disk, and run the same "
            "command again"
        ) from None


def _copy_states(states: Sequence[Path], seed: Path, shards: int) -> None:
    shutil.rmtree(seed, ignore_errors=True)
    seed.mkdir(parents=True, mode=0o700)
    for directory in states:
        for file in directory.glob("*.state"):
            shutil.copyfile(file, seed / file.name)
    write_shard_count(seed, shards)
    sync_entries(seed)
