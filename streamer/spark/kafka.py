"""Kafka inputs in a stream's query: each is a source of Spark's own, beside ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from streamer.engine.beside import KafkaChild, KafkaPlace, Planned
from streamer.engine.direct import DirectStage
from streamer.engine.folding import folded_since
from streamer.engine.frame import Frame
from streamer.engine.intake import pack_piece
from streamer.engine.kafka_rows import KafkaRows, Wanted, stretches
from streamer.plan import Plan
from streamer.spark.jars import no_connector
from streamer.spark.micro_batch import heard
from streamer.spark.shards import labels
from streamer.spark.stages import (
    FRAME,
    FRAME_SCHEMA,
    ROW,
    ROW_SCHEMA,
    arrow,
    calm_collector,
    time_of,
)
from streamer.window import Row as PackRow

PLANNED: Final = "streamer.planned"
"""The local property by which tasks hear of their micro-batch (`Planned`)."""

FETCHING: Final = {
    # After each poll Spark asks twice where a partition begins and ends, and seeks: so a poll has
    # all that a fetch brings, which is bounded by bytes.
    "kafka.max.poll.records": "100000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(16 << 20),
}
"""Options of Spark's source that those of an input may override."""

_SMALL: Final = 2048
"""Bytes up to which messages are small on average."""


def settings(mean: int) -> dict[str, str]:
    """Return the settings of the session of a stream that reads Kafka.

    Args:
        mean: the mean size of its messages, bytes.
    """
    # A message is a row, where without Kafka a few hundred rows make a micro-batch.
    found = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    }
    if mean > _SMALL:
        # With it Spark adds up a batch's size at every row, a fifth of the way of a small one.
        found["spark.sql.execution.arrow.maxBytesPerBatch"] = str(16 << 20)
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
    for child in children:
        options = {**FETCHING, **child.options()}
        options["includeHeaders"] = "true" if wanted.headers else "false"
        needed = replace(wanted, topic=_topic(options), parted="minPartitions" in options)
        try:
            stream = session.readStream.format("kafka").options(**options).load()
        except AnalysisException as e:
            if "KAFKA_DATA_SOURCE_NOT_ENABLED" not in str(e):
                raise
            raise no_connector(os.environ) from None
        made = stage(plan, child.place, needed)
        found.append(stream.select(*needed.columns).mapInArrow(made, schema))
    return found


def _topic(options: Mapping[str, str]) -> str | None:
    """Return the only topic that options name, or None."""
    assigned = list(json.loads(options.get("assign", "{}")))
    topics = assigned or options.get("subscribe", "").split(",")
    return topics[0] if len(topics) == 1 and topics[0] else None


_Batches = Iterable[pa.RecordBatch]
_Stage = Callable[[_Batches], Iterator[pa.RecordBatch]]


def _planned() -> Planned:
    context = TaskContext.get()
    told = context and context.getLocalProperty(PLANNED)
    assert told, "Spark has not passed on the local property of the micro-batch"
    return Planned.heard(told)


def _pack(plan: Plan, place: KafkaPlace, wanted: Wanted) -> _Stage:
    def rows(batches: _Batches) -> Iterator[PackRow]:
        names = labels(plan.shards)
        planned = _planned()
        t = time_of(planned.time, planned.offset)
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
        calm_collector()
        yield from arrow(rows(batches), ROW)

    return stage


def _direct(plan: Plan, place: KafkaPlace, wanted: Wanted) -> _Stage:
    def produced(batches: _Batches) -> Iterator[Frame]:
        source = KafkaRows(place, _planned(), wanted)
        made = DirectStage(plan, micro_batch=heard())
        for stretch in stretches(batches, wanted.topic):
            yield from made.frames(source, source.number(stretch), source.piece(stretch))
        made.finish()

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        calm_collector()
        yield from arrow(produced(batches), FRAME)

    return stage
