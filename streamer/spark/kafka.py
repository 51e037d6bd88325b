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

from streamer.engine.beside import KafkaChild, KafkaPlace, Planned
from streamer.engine.blame import marking
from streamer.engine.direct import DirectStage
from streamer.engine.folding import folded_since
from streamer.engine.frame import Frame
from streamer.engine.intake import pack_piece
from streamer.engine.kafka_rows import KafkaRows, Wanted, stretches
from streamer.engine.ticks import time_of
from streamer.plan import Plan
from streamer.spark.jars import no_connector
from streamer.spark.micro_batch import heard, heard_plan
from streamer.spark.shards import labels
from streamer.spark.stages import FRAME, FRAME_SCHEMA, ROW, ROW_SCHEMA, arrow, begin_task
from streamer.window import Row as PackRow

_POOL: Final = 64
"""Consumers that Spark keeps, each with what it has fetched, when no task uses them."""

_RECORD: Final = 3_000
"""Ten times what a small message takes in the JVM, bytes: what waits has a tenth of the heap."""

_TASKS: Final = 4
"""Tasks for a core at most: partitions that have more than others still leave no core idle."""

_SMALL: Final = 2048
"""Bytes up to which messages are small on average."""


def fetching(partitions: int, heap: int) -> dict[str, str]:
    """Return how much is fetched at once, so that what waits of all partitions fits into a heap.

    Args:
        partitions: how many there are of all topics.
        heap: of the JVM, bytes.

    Returns:
        Options of Spark's source that those of an input may override.
    """
    # After each poll Spark asks twice where a partition begins and ends, and seeks: so a poll has
    # all that a fetch brings. Each partition has a consumer, which keeps what is left of it.
    kept = max(min(partitions, _POOL), 1)
    size = min(4 << 20, heap // 16 // kept)
    return {
        "kafka.max.poll.records": str(max(min(100_000, heap // _RECORD // kept), 500)),
        "kafka.max.partition.fetch.bytes": str(size),
        "kafka.fetch.max.bytes": str(2 * size),
    }


def settings(mean: int) -> dict[str, str]:
    """Return the settings of the session of a stream that reads Kafka.

    Args:
        mean: the mean size of its messages, bytes; 0 when it is not known.
    """
    # A message is a row, where without Kafka a few hundred rows make a micro-batch.
    found = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    }
    # With a bound Spark adds up a batch's size at every row, a third of the JVM's way of a small
    # message; only the largest number means none.
    bound = (1 << 31) - 1 if 0 < mean <= _SMALL else 16 << 20
    found["spark.sql.execution.arrow.maxBytesPerBatch"] = str(bound)
    return found


def kafka_rows(
    session: SparkSession, plan: Plan, children: Sequence[KafkaChild], wanted: Wanted
) -> list[DataFrame]:
    """Return what stage 1 makes of each Kafka input, to be put beside that of our source.

    Args:
        session: the stream's.
        plan: the stream's plan.
        children: the Kafka inputs.
        wanted: the metadata that can be read.
    """
    stage, schema = (_direct, FRAME_SCHEMA) if plan.window is None else (_pack, ROW_SCHEMA)
    found = []
    asked = [child.options() for child in children]
    # Many streams share a heap, and none knows of the others.
    alone = session.sparkContext.getConf().get("spark.scheduler.mode") != "FAIR"
    # That of an executor is not asked for; it is 1 GB at least.
    heap = min(session._jvm.java.lang.Runtime.getRuntime().maxMemory(), 1 << 30)
    amount = fetching(sum(map(_partitions, asked)) if alone else _POOL, heap)
    for child, chosen in zip(children, asked, strict=True):
        options = {**amount, **chosen}
        options["includeHeaders"] = "true" if wanted.headers else "false"
        needed = replace(wanted, topic=_topic(options), parted="minPartitions" in options)
        try:
            stream = session.readStream.format("kafka").options(**options).load()
        except AnalysisException as e:
            if "KAFKA_DATA_SOURCE_NOT_ENABLED" not in str(e):
                raise
            raise no_connector(os.environ) from None
        made = stage(plan, child.place, needed)
        rows = _shared(stream.select(*needed.columns), session, plan, options)
        found.append(rows.mapInArrow(made, schema))
    return found


def _shared(
    rows: DataFrame, session: SparkSession, plan: Plan, options: Mapping[str, str]
) -> DataFrame:
    """Let a task have several partitions where there are many; each stays in its order.

    A micro-batch of 20,000 messages in 64 partitions takes 2.0 CPU seconds so, and 3.1 without.
    Without windows a task is a part of the micro-batch, by which transactions know what was sent:
    it must be the same when another machine runs it again. On a cluster cores may be added.
    """
    if plan.window is None or not plan.master.startswith("local"):
        return rows
    tasks = _TASKS * session.sparkContext.defaultParallelism
    return rows.coalesce(max(tasks, int(options.get("minPartitions", "1"))))


def _partitions(options: Mapping[str, str]) -> int:
    """Return how many partitions an input begins to read; many when nobody knows."""
    starting = options.get("startingOffsets", "")
    return sum(map(len, json.loads(starting).values())) if starting.startswith("{") else _POOL


def _topic(options: Mapping[str, str]) -> str | None:
    """Return the only topic that options name, or None."""
    assigned = list(json.loads(options.get("assign", "{}")))
    topics = assigned or options.get("subscribe", "").split(",")
    return topics[0] if len(topics) == 1 and topics[0] else None


_Batches = Iterable[pa.RecordBatch]
_Stage = Callable[[_Batches], Iterator[pa.RecordBatch]]


def _planned() -> Planned:
    planned = heard_plan()
    assert planned, "Spark has not passed on the local property of the micro-batch"
    return planned


def _pack(plan: Plan, place: KafkaPlace, wanted: Wanted) -> _Stage:
    def rows(batches: _Batches) -> Iterator[PackRow]:
        names = labels(plan.shards)
        planned = _planned()
        t = time_of(planned.offset)
        since = folded_since(planned.offset)
        source = KafkaRows(place, planned, wanted)
        for stretch in stretches(batches, wanted.topic):
            piece = source.piece(stretch)
            for row in pack_piece(
                plan,
                source,
                source.number(stretch),
                piece,
                t,
                since,
                source.partition(piece),
                arrival=source.arrival(stretch),
            ):
                yield row._replace(shard=names[row.shard])

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        begin_task(plan)
        yield from arrow(marking(rows(batches)), ROW)

    return stage


def _direct(plan: Plan, place: KafkaPlace, wanted: Wanted) -> _Stage:
    def produced(batches: _Batches) -> Iterator[Frame]:
        source = KafkaRows(place, _planned(), wanted)
        made = DirectStage(plan, micro_batch=heard())
        for stretch in stretches(batches, wanted.topic):
            yield from made.frames(
                source, source.number(stretch), source.piece(stretch), source.arrival(stretch)
            )
        made.finish()

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        begin_task(plan)
        yield from arrow(marking(produced(batches)), FRAME)

    return stage
