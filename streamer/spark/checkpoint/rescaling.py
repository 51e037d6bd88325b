"""Gives the windows of a checkpoint another number of shards, while nothing runs on it.

What shards hold is read by Spark's own reader of state, cut anew (`streamer.window.rescale`) and
written beside it. The record of the checkpoint is replaced last: it names a new generation, which
goes on from the same offsets, and whose shards begin with what was written. Until then the former
generation is what counts, whatever happens; it stays until the new one has run.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamer.core.errors import StreamerError
from streamer.engine.driver.shard_state_file import (
    ShardStateFile,
    shard_state_path,
    write_shard_count,
)
from streamer.engine.planner.checkpoint_path import CheckpointPath, Location
from streamer.engine.results.layout import sync_entries
from streamer.plan import Plan
from streamer.plan.buffer_chain import level_count
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.generations import (
    begin_rescaled_generation,
    has_committed,
    load_running,
    save_running,
)
from streamer.spark.checkpoint.unfinished_batch import check_finished
from streamer.spark.tasks.shard_labels import shard_labels
from streamer.spark.tasks.state_mark import split_mark
from streamer.window import StateStore
from streamer.window.rescale.rescale_state import RescaleResult, rescale
from streamer.window.state.layout import HEAD_KEY

_DRAFT_DIRECTORY = "rescale.tmp"


@dataclass(frozen=True, slots=True)
class RescaleSummary:
    """The outcome of rescaling.

    Attributes:
        shards_before: the number of shards there was.
        shards_after: the one there is.
        moved: what the shards hold.
        seconds: how long it took.
        former_state: where the former state is, which stays until the new one has run.
    """

    shards_before: int
    shards_after: int
    moved: RescaleResult
    seconds: float
    former_state: CheckpointPath


def current_shards(plan: Plan, checkpoint: Checkpoint) -> int:
    """Return how many shards the windows of a checkpoint have.

    Args:
        plan: of the config that runs on it.
        checkpoint: held by this program.

    Raises:
        StreamerError: there is nothing that could be cut anew; the text says why.
    """
    if plan.window is None:
        raise StreamerError(f"the config has no windows ({plan.buffer.name}), and so no shards")
    record = checkpoint.read_record()
    if record.get("finished") or not checkpoint.is_resumable:
        raise CheckpointError(
            f"nothing is kept in the checkpoint {checkpoint}: set spark.shards in the config for "
            f"the next start"
        )
    if "draining" in record:
        raise CheckpointError(
            f"a deploy was letting open windows out of the checkpoint {checkpoint} when "
            "it was broken off: start the stream once, then change its shards"
        )
    shards: int = checkpoint.check_fingerprint(plan.fingerprint)["shards"]
    if not has_committed(checkpoint) and checkpoint.seed is None:
        raise CheckpointError(
            f"no micro-batch of the checkpoint {checkpoint} was ever finished: start the "
            "stream once, then change its shards"
        )
    return shards


def rescale_checkpoint(
    plan: Plan,
    checkpoint: Checkpoint,
    shards: int,
    session: Callable[[], SparkSession],
) -> RescaleSummary:
    """Give the windows of a checkpoint another number of shards.

    Args:
        plan: of the config that runs on it.
        checkpoint: held by this program; no query runs on it.
        shards: how many there are to be.
        session: starts Spark, where that is needed.

    Raises:
        StreamerError: it cannot be done; the checkpoint is as it was.
    """
    began = time.monotonic()
    before = current_shards(plan, checkpoint)
    check_finished(checkpoint, plan, "change its shards")
    assert plan.window is not None
    former = checkpoint.spark
    draft = checkpoint.directory / _DRAFT_DIRECTORY
    shutil.rmtree(draft, ignore_errors=True)
    try:
        state, cut = draft / "state", draft / "cut"
        cut.mkdir(parents=True)
        if has_committed(checkpoint):
            state.mkdir()
            read_shards(session(), former, state, before, plan)
        else:
            # It was cut anew before, and has not run since.
            assert checkpoint.seed is not None
            former = checkpoint.seed
            if isinstance(former, Path):
                state = former
            else:
                former.fetch(state)
        moved = _rescale_files(plan, (state, before), (cut, shards))
        sync_entries(cut)
        running = load_running(checkpoint)
        begin_rescaled_generation(checkpoint, shards, cut)
    except OSError as e:
        raise StreamerError(
            f"the new shards cannot be written: {e}; the checkpoint {checkpoint} is as it was"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    if running is not None:
        config, running_plan = running
        save_running(checkpoint, config, replace(running_plan, shards=shards))
    return RescaleSummary(before, shards, moved, time.monotonic() - began, former)


def _rescale_files(plan: Plan, source: tuple[Path, int], target: tuple[Path, int]) -> RescaleResult:
    """Cut the files of shards anew; each directory comes with the shards of a buffer."""
    (state, before), (cut, after) = source, target
    with ExitStack() as files:
        stores = [
            files.enter_context(ShardStateFile(shard_state_path(state, n)))
            for n in range(before * len(plan.windows))
        ]
        into: list[StateStore] = [
            files.enter_context(ShardStateFile(shard_state_path(cut, n), new=True))
            for n in range(after * len(plan.windows))
        ]
        moved = rescale_buffers(plan, stores, into)
    write_shard_count(cut, len(into))
    return moved


def rescale_buffers(
    plan: Plan, stores: Sequence[StateStore], into: Sequence[StateStore]
) -> RescaleResult:
    """Cut the state of each buffer anew (`rescale`).

    Args:
        plan: the stream's.
        stores: the state of all shards of the first buffer, then of the next one.
        into: empty ones, as many as there are to be, in the same order.

    Returns:
        What went to other shards, over all buffers.

    Raises:
        StreamerError: the state of a buffer cannot be cut anew.
    """
    windows, keys = plan.windows, [one.windows.key for one in plan.buffers] or [plan.key]
    before, after = len(stores) // len(windows), len(into) // len(windows)
    moved = [
        rescale(
            window,
            keys[number] is not None,
            stores[before * number : before * (number + 1)],
            into[after * number : after * (number + 1)],
        )
        for number, window in enumerate(windows)
    ]
    if len(moved) == 1:
        return moved[0]
    sums = sum(one.messages for one in moved), sum(one.windows for one in moved)
    return RescaleResult(*sums, sliced=True)


def read_shards(
    session: SparkSession,
    spark: Location,
    into: Path,
    shards: int,
    plan: Plan,
    batch: int | None = None,
) -> None:
    """Write what Spark keeps of each shard to a file of its own.

    Args:
        session: Spark's.
        spark: Spark's checkpoint.
        into: a directory for the files.
        shards: of each buffer.
        plan: of the config that runs on it.
        batch: Spark's number of the micro-batch after which it was so; None for the newest.

    Raises:
        StreamerError: it cannot be read, or is not kept any more.
    """
    reader = session.read.format("statestore").option("stateVarName", "packs")
    if batch is not None:
        reader = reader.option("batchId", batch)
    buffers = len(plan.windows)
    number = {label: shard for shard, label in enumerate(shard_labels(shards, buffers))}
    with ExitStack() as files:
        stores = [
            files.enter_context(ShardStateFile(shard_state_path(into, n), new=True))
            for n in range(shards * buffers)
        ]
        try:
            for level in range(level_count(plan)):
                rows = (
                    reader.option("operatorId", level)
                    .load(str(spark))
                    .selectExpr(
                        "key.shard",
                        "user_map_key.pane",
                        "user_map_key.seq",
                        "user_map_value.body",
                    )
                )
                for shard, pane, seq, body in rows.toLocalIterator():
                    value = bytes(body)
                    if (pane, seq) == HEAD_KEY:
                        value, _ = split_mark(value)
                    stores[number[shard]].put(pane, seq, value)
        except (Py4JError, PySparkException) as e:
            line = str(e).strip().splitlines()[0]
            raise StreamerError(f"the state in {spark} cannot be read: {line}") from e
