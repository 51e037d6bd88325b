"""States of earlier micro-batches that are still in a checkpoint: read, or a new one made of one.

Spark keeps the states of the last micro-batches (`spark.sql.streaming.minBatchesToRetain`). They
are read by its own reader of state, while nothing runs on the checkpoint, which is not changed.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession

from streamer.core.errors import StreamerError
from streamer.engine.driver.shard_state_file import (
    ShardStateFile,
    shard_state_path,
    write_shard_count,
)
from streamer.engine.planner.checkpoint_path import list_batch_numbers
from streamer.engine.planner.offset_log import read_planned
from streamer.engine.results.layout import sync_entries
from streamer.plan import Plan
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.rescaling import read_shards

_COPY_STATE_NAME: Final = "seed-1"
"""The directory of the state in a copy, which is written before its record."""
_LOCK_NAMES: Final = frozenset({"lock", "jvm.lock"})


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


def list_batch_times(checkpoint: Checkpoint) -> list[tuple[int, int]]:
    """Return the micro-batches of `list_kept_batches`, each with its time, Unix ns."""
    rows = []
    for batch in list_kept_batches(checkpoint):
        number = batch - checkpoint.global_batch_number(0)
        offset = read_planned(checkpoint.spark, number, has_kafka=False).offset
        rows.append((batch, offset.batch_time))
    return rows


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


@contextmanager
def open_state(
    session: Callable[[], SparkSession], checkpoint: Checkpoint, plan: Plan, batch: int | None
) -> Iterator[list[ShardStateFile]]:
    """Give the states of the shards after a micro-batch, those of the first buffer first.

    They are read from files that are gone afterwards; the arguments and errors are those of
    `read_state`.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="streamer-state-")))
        shards = read_state(session, checkpoint, plan, batch, directory)
        yield [
            stack.enter_context(ShardStateFile(shard_state_path(directory, number)))
            for number in range(shards * len(plan.windows))
        ]


def is_unfinished_copy(directory: Path) -> bool:
    """Return whether a directory has what a `copy_state` has left that was broken off."""
    names = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    return bool(names) and names <= {_COPY_STATE_NAME, *_LOCK_NAMES}


def delete_unfinished_copy(target: Checkpoint) -> None:
    """Delete what a `copy_state` has left that was broken off, if that is all there is.

    Args:
        target: held by this program, so that no other one copies to it.
    """
    if is_unfinished_copy(target.directory):
        shutil.rmtree(target.directory / _COPY_STATE_NAME, ignore_errors=True)


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
    seed = target.directory / _COPY_STATE_NAME
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
