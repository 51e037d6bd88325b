"""A stream's query: what Spark is given to run, and what ends it between two micro-batches."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamer.engine.location import Location
from streamer.errors import StreamerError
from streamer.plan import Plan
from streamer.source.replayable import Replayable
from streamer.spark.monitors import end_monitors
from streamer.spark.source import SourcePlan, stream_source
from streamer.spark.stages import frames_of

Deliver = Callable[[DataFrame, int], None]

_AT_ONCE = "0 seconds"
"""Spark's trigger. An interval would be waited for by the wall clock: for an hour, when that is set
back by an hour. After a look that found nothing Spark rests by `spark.sql.streaming.pollingDelay`,
and when a micro-batch is worth it the source says.
"""


class NotStartedError(StreamerError):
    """Spark does not start the query.

    Attributes:
        said: all that Spark said.
    """

    def __init__(self, text: str, said: str) -> None:
        """Take the reason in a sentence, and all that Spark said."""
        super().__init__(f"Spark does not start the stream: {text}")
        self.said = said


def begin(
    session: SparkSession,
    plan: Plan,
    source: Replayable,
    source_plan: SourcePlan,
    beside: Sequence[DataFrame],
    checkpoint: Location,
    deliver: Deliver,
) -> StreamingQuery:
    """Start a query.

    Args:
        session: the stream's own.
        plan: what runs.
        source: the part of the input that is no source of Spark's.
        source_plan: how that part is read.
        beside: what Spark's own sources give.
        checkpoint: Spark's.
        deliver: a method that takes the frames of each micro-batch; it does not keep its object.
    """
    # Of queries that ended by themselves, or are left behind.
    end_monitors(session)
    session.dataSource.register(stream_source(source_plan))
    session.conf.set("spark.sql.shuffle.partitions", str(max(plan.shards, 1)))
    stream = session.readStream.format("streamer").load()
    return (
        frames_of(plan, source, stream, beside=beside)
        .writeStream.queryName(plan.name)
        .foreachBatch(_weakly(deliver))
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=_AT_ONCE)
        .start()
    )


def _weakly(deliver: Deliver) -> Deliver:
    # What Java calls back is kept until it forgets the query, and Java keeps the query until Python
    # forgets the stream: if one of them were not weak, neither would ever be forgotten.
    method = weakref.WeakMethod(deliver)

    def called(frames: DataFrame, micro_batch: int) -> None:
        found = method()
        if found is None:
            raise RuntimeError("the stream is gone, and its query goes on")
        found(frames, micro_batch)

    return called


def end(query: StreamingQuery, timeout: float) -> bool:
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
