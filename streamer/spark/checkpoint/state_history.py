"""States of earlier micro-batches that are still in a checkpoint: read, or a new one made of one.

Spark keeps the states of the last micro-batches (`spark.sql.streaming.minBatchesToRetain`). They
are read by its own reader of state, while nothing runs on the checkpoint, which is not changed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from streamer.core.errors import StreamerError
from streamer.engine.driver.shard_state_file import write_shard_count
from streamer.engine.planner.checkpoint_path import list_batch_numbers
from streamer.engine.planner.offset_log import read_planned
from streamer.engine.results.layout import sync_entries
from streamer.plan import Plan
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.rescaling import read_shards


def list_kept_batches(checkpoint: Checkpoint) -> list[int]:
    """Return the numbers of the committed micro-batches whose offsets are kept, the oldest first.

    They are numbered over all generations, as logs and metrics have them.
    """
    planned = {*list_batch_numbers(checkpoint.spark / "offsets")}
    committed = sorted(planned & {*list_batch_numbers(checkpoint.spark / "commits")})
    return [checkpoint.global_batch_number(number) for number in committed]


def find_batch(checkpoint: Checkpoint, batch: int | None) -> int:
    """Return Spark's number of a micro-batch of a checkpoint.

    Args:
        checkpoint: held by this program.
        batch: its number over all generations; None for the newest.

    Raises:
        CheckpointError: it is not kept.
    """
    kept = list_kept_batches(checkpoint)
    if not kept:
        raise CheckpointError(
            f"no micro-batch of the checkpoint {checkpoint} was ever finished: start the stream "
            "once"
        )
    if batch is None:
        batch = kept[-1]
    if batch not in kept:
        raise CheckpointError(
            f"micro-batch {batch:,} is not in the checkpoint {checkpoint}: expected one of "
            f"{kept[0]:,} to {kept[-1]:,} (streamer state batches)"
        )
    return batch - checkpoint.global_batch_number(0)


def read_state(
    session: Callable[[], SparkSession],
    checkpoint: Checkpoint,
    plan: Plan,
    batch: int | None,
    into: Path,
) -> int:
    """Write the state of each shard after a micro-batch to files; return how many there are.

    Args:
        session: starts Spark.
        checkpoint: held by this program; no query runs on it.
        plan: of the config that runs on it.
        batch: the micro-batch, numbered over all generations; None for the newest.
        into: an empty directory.

    Raises:
        StreamerError: there are no windows, or the state is not kept.
    """
    if plan.window is None:
        raise StreamerError(f"the config has no windows ({plan.buffer.name}), and so no state")
    number = find_batch(checkpoint, batch)
    shards = int(checkpoint.check_fingerprint(plan.fingerprint)["shards"])
    read_shards(session(), checkpoint.spark, into, shards, plan, number)
    return shards


def copy_state(
    session: Callable[[], SparkSession],
    checkpoint: Checkpoint,
    plan: Plan,
    batch: int | None,
    target: Checkpoint,
) -> int:
    """Make a new checkpoint that goes on behind a micro-batch of another one.

    The record of the new one is written last: until then it is no checkpoint.

    Args:
        session: starts Spark.
        checkpoint: held by this program; it is not changed.
        plan: of the config that runs on it.
        batch: the micro-batch, numbered over all generations; None for the newest.
        target: the new one, on this machine, held by this program.

    Returns:
        The number of the micro-batch.

    Raises:
        StreamerError: it cannot be made.
    """
    if target.read_record() or not target.is_new:
        raise CheckpointError(f"the checkpoint {target} is in use: name a new directory")
    number = find_batch(checkpoint, batch)
    record = checkpoint.read_record()
    if "draining" in record:
        raise CheckpointError(
            f"a deploy was letting open windows out of the checkpoint {checkpoint} when it was "
            "broken off: start the stream once"
        )
    if checkpoint.spool.is_dir() and any(checkpoint.spool.iterdir()):
        raise CheckpointError(
            f"the input of {checkpoint} keeps in its spool what cannot be read twice: only a "
            "stream whose input can be read again (files, Kafka) can be copied"
        )
    planned = read_planned(checkpoint.spark, number, has_kafka=False)
    seed = target.seed_path(1)
    assert isinstance(seed, Path)
    seed.mkdir(mode=0o700)
    shards = read_state(session, checkpoint, plan, batch, seed)
    write_shard_count(seed, shards * len(plan.windows))
    sync_entries(seed)
    target.write_record(
        {
            "fingerprint": record["fingerprint"],
            "inputs": record.get("inputs", {}),
            "generation": 1,
            "seed": 1,
            "identity": uuid.uuid4().hex[:16],
            "begins_at": planned.offset.to_start_fields(has_same_state=True),
            "kafka_begins_at": [*planned.ends],
        }
    )
    return checkpoint.global_batch_number(number)
