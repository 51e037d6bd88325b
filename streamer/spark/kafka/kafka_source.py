"""Kafka inputs in a stream's query: each is a source of Spark's own, beside ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from streamer.engine.planner.kafka_inputs import KafkaInputRef, StreamKafkaInput
from streamer.engine.planner.offset_log import PlannedBatch
from streamer.engine.report.result_frame import Frame
from streamer.engine.stage.kafka_messages import (
    KafkaMessageReader,
    NeededColumns,
    PartitionRun,
    split_partition_runs,
)
from streamer.engine.stage.pack_stage import PackStage
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import Plan
from streamer.spark.compat import java_packages
from streamer.spark.jars.kafka_jars import missing_connector_error
from streamer.spark.tasks.stages import (
    FRAME_ARROW_SCHEMA,
    FRAME_SCHEMA,
    ROW_ARROW_SCHEMA,
    ROW_SCHEMA,
    current_micro_batch,
    current_planned_batch,
    labels_of,
    make_arrow_stage,
)
from streamer.window import ShuffleRow as PackRow

_CONSUMER_POOL_SIZE: Final = 64
"""Consumers that Spark keeps, each with what it has fetched, when no task uses them."""

_RECORD_BYTES: Final = 3_000
"""Ten times what a small message takes in the JVM, bytes: what waits has a tenth of the heap."""

_MAX_TASKS_PER_CORE: Final = 4
"""Tasks for a core at most: partitions that have more than others still leave no core idle."""

_SMALL_MESSAGE_BYTES: Final = 2048
"""Bytes up to which messages are small on average."""


def fetch_options(partitions: int, heap: int) -> dict[str, str]:
    """Return how much is fetched at once, so that what waits of all partitions fits into a heap.

    Args:
        partitions: how many there are of all topics.
        heap: of the JVM, bytes.

    Returns:
        Options of Spark's source that those of an input may override.
    """
    # After each poll Spark asks twice where a partition begins and ends, and seeks: so a poll has
    # all that a fetch brings. Each partition has a consumer, which keeps what is left of it.
    consumers = max(min(partitions, _CONSUMER_POOL_SIZE), 1)
    size = min(4 << 20, heap // 16 // consumers)
    return {
        "kafka.max.poll.records": str(max(min(100_000, heap // _RECORD_BYTES // consumers), 500)),
        "kafka.max.partition.fetch.bytes": str(size),
        "kafka.fetch.max.bytes": str(2 * size),
    }


def kafka_session_settings(mean_size: int) -> dict[str, str]:
    """Return the settings of the session of a stream that reads Kafka.

    Args:
        mean_size: the mean size of its messages, bytes; 0 when it is not known.
    """
    # A message is a row, where without Kafka a few hundred rows make a micro-batch.
    session_settings = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    }
    # With a bound Spark adds up a batch's size at every row, a third of the JVM's way of a small
    # message; only the largest number means none.
    bound = (1 << 31) - 1 if 0 < mean_size <= _SMALL_MESSAGE_BYTES else 16 << 20
    session_settings["spark.sql.execution.arrow.maxBytesPerBatch"] = str(bound)
    return session_settings


def make_kafka_rows(
    session: SparkSession,
    plan: Plan,
    children: Sequence[StreamKafkaInput],
    needed_columns: NeededColumns,
) -> list[DataFrame]:
    """Return what stage 1 makes of each Kafka input, to be put beside that of our source.

    Args:
        session: the stream's.
        plan: the stream's plan.
        children: the Kafka inputs.
        needed_columns: the metadata that can be read.
    """
    stage, schema = (
        (_direct_stage, FRAME_SCHEMA) if plan.window is None else (_pack_stage, ROW_SCHEMA)
    )
    rows_by_input = []
    child_options = [child.options() for child in children]
    # Many streams share a heap, and none knows of the others.
    is_only_stream = session.sparkContext.getConf().get("spark.scheduler.mode") != "FAIR"
    # That of an executor is not asked for; it is 1 GB at least.
    heap = min(
        java_packages(session.sparkContext).java.lang.Runtime.getRuntime().maxMemory(), 1 << 30
    )
    fetch_limits = fetch_options(
        sum(map(_partition_count, child_options)) if is_only_stream else _CONSUMER_POOL_SIZE, heap
    )
    for child, own_options in zip(children, child_options, strict=True):
        options = {**fetch_limits, **own_options}
        options["includeHeaders"] = "true" if needed_columns.headers else "false"
        needed = replace(
            needed_columns, topic=_single_topic(options), is_split="minPartitions" in options
        )
        try:
            stream = session.readStream.format("kafka").options(**options).load()
        except AnalysisException as e:
            if "KAFKA_DATA_SOURCE_NOT_ENABLED" not in str(e):
                raise
            raise missing_connector_error(os.environ) from None
        run_stage = stage(plan, child.ref, needed)
        rows = _coalesce_partitions(stream.select(*needed.columns), session, plan, options)
        rows_by_input.append(rows.mapInArrow(run_stage, schema))
    return rows_by_input


def _coalesce_partitions(
    rows: DataFrame, session: SparkSession, plan: Plan, options: Mapping[str, str]
) -> DataFrame:
    """Let a task have several partitions where there are many; each stays in its order.

    A micro-batch of 20,000 messages in 64 partitions takes 2.0 CPU seconds so, and 3.1 without.
    Without windows a task is a part of the micro-batch, by which transactions know what was sent:
    it must be the same when another machine runs it again. On a cluster cores may be added.
    """
    if plan.window is None or not plan.master.startswith("local"):
        return rows
    tasks = _MAX_TASKS_PER_CORE * session.sparkContext.defaultParallelism
    return rows.coalesce(max(tasks, int(options.get("minPartitions", "1"))))


def _partition_count(options: Mapping[str, str]) -> int:
    """Return how many partitions an input begins to read; many when nobody knows."""
    starting = options.get("startingOffsets", "")
    return (
        sum(map(len, json.loads(starting).values()))
        if starting.startswith("{")
        else _CONSUMER_POOL_SIZE
    )


def _single_topic(options: Mapping[str, str]) -> str | None:
    """Return the only topic that options name, or None."""
    assigned = list(json.loads(options.get("assign", "{}")))
    topics = assigned or options.get("subscribe", "").split(",")
    return topics[0] if len(topics) == 1 and topics[0] else None


_Batches = Iterable[pa.RecordBatch]
_Stage = Callable[[_Batches], Iterator[pa.RecordBatch]]


def _planned_batch() -> PlannedBatch:
    planned = current_planned_batch()
    assert planned, "Spark has not passed on the local property of the micro-batch"
    return planned


def _make_piece(source: KafkaMessageReader, stretch: PartitionRun) -> SourcePiece:
    content = source.piece(stretch)
    return SourcePiece(
        source,
        source.number(stretch),
        content,
        source.arrival(stretch),
        source.partition_of(content),
    )


def _pack_stage(plan: Plan, place: KafkaInputRef, needed_columns: NeededColumns) -> _Stage:
    task_plan = TaskPlan.of(plan)

    def rows(batches: _Batches) -> Iterator[PackRow]:
        names = labels_of(plan)
        planned = _planned_batch()
        pack_stage = PackStage(task_plan)
        offset = planned.offset
        source = KafkaMessageReader(place, planned, needed_columns)
        for stretch in split_partition_runs(batches, needed_columns.topic):
            piece = _make_piece(source, stretch)
            for row in pack_stage.rows(piece, offset.batch_time, offset.aggregates_from):
                yield row._replace(shard=names[row.shard])

    return make_arrow_stage(plan, rows, ROW_ARROW_SCHEMA)


def _direct_stage(plan: Plan, place: KafkaInputRef, needed_columns: NeededColumns) -> _Stage:
    task_plan = TaskPlan.of(plan)

    def produce_frames(batches: _Batches) -> Iterator[Frame]:
        source = KafkaMessageReader(place, _planned_batch(), needed_columns)
        direct_stage = StatelessStage(task_plan, micro_batch=current_micro_batch())
        for stretch in split_partition_runs(batches, needed_columns.topic):
            yield from direct_stage.frames(_make_piece(source, stretch))
        direct_stage.finish()

    return make_arrow_stage(plan, produce_frames, FRAME_ARROW_SCHEMA)
