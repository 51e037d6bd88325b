"""Spark's call for each micro-batch, and the frames that its tasks make, in few calls of Java.

What PySpark does for `foreachBatch` and `toArrow` is made for any session and any rows: for each
micro-batch it makes a session anew, asks for its settings and the schema, and Java plans a second
query around the rows and describes it for pages that nobody reads. It took 40 calls of Java, of
which 12 are left; and where tasks run in this JVM, a class of ours collects the rows as they are.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

from py4j.java_gateway import java_import
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.util import _load_from_socket

from streamer.engine.report.result_frame import Frame
from streamer.spark.compat import (
    FALLBACKS,
    Fallback,
    Fallbacks,
    java_gateway,
    java_packages,
)
from streamer.spark.jvm.own_classes import define_classes, is_one_jvm

Deliver = Callable[[DataFrame, int], None]

_SOURCES_PACKAGE: Final = "org.apache.spark.sql.execution.streaming.sources"
_HEAD: Final = struct.Struct(">iqiiiii")
"""Kind, order, shard, seq, output, and the lengths of the route and the body, which follow."""
_NEIGHBOUR: Final = "org.apache.spark.sql.execution.LogicalRDD"
_COLLECTOR_NAME: Final = "FrameCollector"


class BatchCallback:
    """Python's end of Spark's `foreachBatch`.

    Attributes:
        error: what the newest call has raised; None when it has not.
    """

    def __init__(self, session: SparkSession, deliver: Deliver) -> None:
        """Take the session of the stream, and what is called with each micro-batch."""
        self._session = session
        self._deliver = deliver
        self.error: Exception | None = None

    def call(self, frames: Any, number: int) -> None:
        """Take a micro-batch from Java."""
        try:
            self._deliver(DataFrame(frames, self._session), number)
        except Exception as error:
            self.error = error
            raise

    class Java:
        """By this py4j knows what the object stands for."""

        implements = (
            "org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchFunction",
        )


def call_for_each_batch(writer: Any, session: SparkSession, deliver: Deliver) -> None:
    """Have the writer of a stream call a method with each micro-batch, as `foreachBatch` does.

    Args:
        writer: a `DataStreamWriter`.
        session: the stream's.
        deliver: a method, whose object is not kept.
    """
    gateway = java_gateway(session.sparkContext)
    java_import(gateway.jvm, f"{_SOURCES_PACKAGE}.*")
    callback = BatchCallback(session, _weak_callback(deliver))
    gateway.jvm.PythonForeachBatchHelper.callForeachBatch(writer._jwrite, callback)
    ensure_callback_server_started(gateway)


def _weak_callback(deliver: Deliver) -> Deliver:
    # What Java calls back is kept until it forgets the query, and Java keeps the query until Python
    # forgets the stream: if one of them were not weak, neither would ever be forgotten.
    method = weakref.WeakMethod(deliver)

    def deliver_batch(frames: DataFrame, micro_batch: int) -> None:
        bound_method = method()
        if bound_method is None:
            raise RuntimeError("the stream is gone, but its query continues")
        bound_method(frames, micro_batch)

    return deliver_batch


class FrameCollection:
    """Collects the frames of micro-batches, which runs their tasks."""

    def __init__(self, session: SparkSession, fallbacks: Fallbacks = FALLBACKS) -> None:
        """Take the session of the stream; `fallbacks` counts where Java does not take the class."""
        context = session.sparkContext
        self._collect: Any = None
        jvm = java_packages(context)
        if is_one_jvm(context.master) and define_classes(
            jvm, _NEIGHBOUR, (_COLLECTOR_NAME,), Fallback.PLANNED_FRAMES, fallbacks
        ):
            self._collect = jvm.org.apache.spark.sql.execution.FrameCollector.collect

    def collect(self, batch: DataFrame) -> list[Frame]:
        """Run the tasks of a micro-batch and return all that they make."""
        answer = self._collect(batch._jdf) if self._collect is not None else None
        if answer is None:
            table = batch.toArrow()
            columns = (column.to_pylist() for column in table.columns)
            return [Frame(*row) for row in zip(*columns, strict=True)]
        if isinstance(answer, bytes):
            return [*decode_frames(answer)]
        place, secret = answer[0], answer[1]
        frames: list[Frame] = []
        with _load_from_socket((place, secret), NoOpSerializer()) as portions:
            for portion in portions:
                frames += decode_frames(portion)
        answer[2].getResult()
        return frames


def decode_frames(portion: bytes) -> Iterator[Frame]:
    """Return the frames that the collector has put one after the other."""
    at, end, size = 0, len(portion), _HEAD.size
    while at < end:
        kind, order, shard, seq, output, route, body = _HEAD.unpack_from(portion, at)
        at += size
        middle = at + route
        yield Frame(
            kind,
            order,
            shard,
            seq,
            output,
            portion[at:middle].decode(),
            portion[middle : middle + body],
        )
        at = middle + body
