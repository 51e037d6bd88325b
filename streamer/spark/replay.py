"""Send rejected messages again in a worker, by a small job of Spark's beside the micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from streamer.engine.blame import marking
from streamer.engine.frame import Frame
from streamer.engine.location import Anywhere
from streamer.engine.rejected import Rejected, packed_rejected, unpacked_rejected
from streamer.engine.rejections import LogLine, Rejections
from streamer.engine.replay import replay
from streamer.engine.signals import Signals
from streamer.plan import Plan
from streamer.plan.plan import cores
from streamer.plan.rejecting import replays
from streamer.spark.micro_batch import heard
from streamer.spark.redelivery import CORES_A_TURN, TURNS
from streamer.spark.stages import FRAME, FRAME_SCHEMA, arrow, begin_task

_Batches = Iterable[pa.RecordBatch]


def rejections_of(plan: Plan, place: Anywhere, signals: Signals, log: LogLine) -> Rejections:
    """Return what takes the rejected messages of a stream.

    Args:
        plan: the stream's plan.
        place: where they are kept.
        signals: by which a micro-batch is asked for.
        log: takes log lines.
    """
    return Rejections(
        place,
        log,
        wake=lambda: signals.set_woken(time.time_ns()),
        replays=replays(plan.input, plan.resources),
    )


def replay_in_worker(
    session: SparkSession,
    plan: Plan,
    rejected: Sequence[Rejected],
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
    with TURNS.turn(max(cores(plan.master) // CORES_A_TURN, 1), stopping):
        job = session.range(0, 1, 1, 1).mapInArrow(_stage(plan, rejected), FRAME_SCHEMA)
        table = job.toArrow()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [Frame(*row) for row in rows]


def _stage(
    plan: Plan, rejected: Sequence[Rejected]
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    bodies = [*packed_rejected(rejected)]

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        begin_task(plan)
        for batch in batches:
            if batch.num_rows:
                again = [one for body in bodies for one in unpacked_rejected(body)]
                yield from arrow(marking(replay(plan, again, micro_batch=heard())), FRAME)

    return stage
