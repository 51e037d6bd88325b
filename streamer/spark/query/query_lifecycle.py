"""A stream's query: what Spark is given to run, and what ends it between two micro-batches."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamer.core.errors import StreamerError
from streamer.engine.planner.checkpoint_path import Location
from streamer.plan import Plan
from streamer.sdk.input.replayable import ReplayableSource
from streamer.spark.query.idle_worker_monitors import interrupt_monitors
from streamer.spark.query.source import SourcePlan, stream_source
from streamer.spark.tasks.stages import build_frames

Deliver = Callable[[DataFrame, int], None]

_TRIGGER_INTERVAL = "0 seconds"
"""Spark's trigger. An interval would be waited for by the wall clock: for an hour, when that is set
back by an hour. After a look that found nothing Spark rests by `spark.sql.streaming.pollingDelay`,
and when a micro-batch is worth it the source says.
"""


class NotStartedError(StreamerError):
    """Spark does not start the query.

    Attributes:
        spark_error: all that Spark said.
    """

    def __init__(self, text: str, spark_error: str) -> None:
        """Take the reason in a sentence, and the whole text of Spark's error."""
        super().__init__(f"Spark does not start the stream: {text}")
        self.spark_error = spark_error


def start_query(
    session: SparkSession,
    plan: Plan,
    source: ReplayableSource,
    source_plan: SourcePlan,
    kafka_rows: Sequence[DataFrame],
    checkpoint: Location,
    deliver: Deliver,
) -> StreamingQuery:
    """Start a query.

    Args:
        session: the stream's own.
        plan: what runs.
        source: the part of the input that is no source of Spark's.
        source_plan: how that part is read.
        kafka_rows: what Spark's own sources give.
        checkpoint: Spark's.
        deliver: a method that takes the frames of each micro-batch; it does not keep its object.
    """
    # Of queries that ended by themselves, or are left behind.
    interrupt_monitors(session)
    session.dataSource.register(stream_source(source_plan))
    session.conf.set("spark.sql.shuffle.partitions", str(max(plan.shards, 1)))
    stream = session.readStream.format("streamer").load()
    return (
        build_frames(plan, source, stream, kafka_rows=kafka_rows)
        .writeStream.queryName(plan.name)
        .foreachBatch(_weak_callback(deliver))
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=_TRIGGER_INTERVAL)
        .start()
    )


def _weak_callback(deliver: Deliver) -> Deliver:
    # What Java calls back is kept until it forgets the query, and Java keeps the query until Python
    # forgets the stream: if one of them were not weak, neither would ever be forgotten.
    method = weakref.WeakMethod(deliver)

    def deliver_batch(frames: DataFrame, micro_batch: int) -> None:
        bound_method = method()
        if bound_method is None:
            raise RuntimeError("the stream is gone, and its query goes on")
        bound_method(frames, micro_batch)

    return deliver_batch


def stop_query(query: StreamingQuery, timeout: float) -> bool:
    """Let the micro-batch in hand finish, then stop.

    Args:
        query: may have ended by itself.
        timeout: seconds to wait.

    Returns:
        Whether it finished in time; else the query goes on.
    """
    until = time.monotonic() + timeout
    while query.isActive and query.status["isTriggerActive"]:
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    if query.isActive:
        query.stop()
    return True
