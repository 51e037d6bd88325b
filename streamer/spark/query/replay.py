"""Send rejected messages again in a worker, by a small job of Spark's beside the micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from streamer.core.log_format import LogLine
from streamer.engine.driver.rejections import Rejections
from streamer.engine.planner.checkpoint_path import CheckpointPath
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.engine.report.component_errors import encode_errors
from streamer.engine.report.rejected_messages import (
    RejectedMessages,
    decode_rejected,
    encode_rejected,
)
from streamer.engine.report.result_frame import Frame
from streamer.engine.stage.replay import replay_rejected
from streamer.plan import Plan
from streamer.plan.plan import count_cores
from streamer.plan.rejection import replays
from streamer.spark.query.redelivery import CORES_PER_TURN, TURNS
from streamer.spark.tasks.stages import (
    FRAME_ARROW_SCHEMA,
    FRAME_SCHEMA,
    current_micro_batch,
    prepare_task,
    to_record_batches,
)

_Batches = Iterable[pa.RecordBatch]


def make_rejections(
    plan: Plan, directory: CheckpointPath, signals: PlannerChannel, log: LogLine
) -> Rejections:
    """Return what takes the rejected messages of a stream.

    Args:
        plan: the stream's plan.
        directory: where they are kept.
        signals: by which a micro-batch is asked for.
        log: takes log lines.
    """
    return Rejections(
        directory,
        log,
        wake=lambda: signals.driver.update(requested_at=time.time_ns()),
        replays=replays(plan.input, plan.resources),
    )


def replay_in_worker(
    session: SparkSession,
    plan: Plan,
    rejected: Sequence[RejectedMessages],
    stopping: Callable[[], bool],
) -> list[Frame]:
    """Send messages again, all in one task; see `engine.replay`.

    Args:
        session: the stream's.
        plan: the stream's plan.
        rejected: the messages, with their numbers.
        stopping: whether the stream is to stop.

    Raises:
        DeliveryStoppedError: it is, and nothing was sent.
    """
    # As all tries of streams that are blocked: those who have nothing to wait for go first.
    with TURNS.turn(max(count_cores(plan.master) // CORES_PER_TURN, 1), stopping):
        job = session.range(0, 1, 1, 1).mapInArrow(_replay_stage(plan, rejected), FRAME_SCHEMA)
        table = job.toArrow()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [Frame(*row) for row in rows]


def _replay_stage(
    plan: Plan, rejected: Sequence[RejectedMessages]
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    bodies = [*encode_rejected(rejected)]

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        prepare_task(plan)
        for batch in batches:
            if batch.num_rows:
                messages = [one for body in bodies for one in decode_rejected(body)]
                yield from to_record_batches(
                    encode_errors(
                        replay_rejected(plan, messages, micro_batch=current_micro_batch())
                    ),
                    FRAME_ARROW_SCHEMA,
                )

    return stage
