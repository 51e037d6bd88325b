"""Kafka inputs in a stream's query: each is a source of Spark's own, beside ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
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

SETTINGS: Final = {
    # A message a row: with few in a batch most of the time would go into batches.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
"""Settings of the session of a stream that reads Kafka."""


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
        options = child.options()
        options["includeHeaders"] = "true" if wanted.headers else "false"
        try:
            stream = session.readStream.format("kafka").options(**options).load()
        except AnalysisException as e:
            if "KAFKA_DATA_SOURCE_NOT_ENABLED" not in str(e):
                raise
            raise no_connector(os.environ) from None
        made = stage(plan, child.place, wanted)
        found.append(stream.select(*wanted.columns).mapInArrow(made, schema))
    return found


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
        for stretch in stretches(batches):
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
        for stretch in stretches(batches):
            yield from made.frames(source, source.number(stretch), source.piece(stretch))
        made.finish()

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        calm_collector()
        yield from arrow(produced(batches), FRAME)

    return stage
