"""A source whose micro-batches are the turns of a test, and whose clock is the test's.

Everything behind it is what a stream runs on: both stages, the shuffle, Spark's state store and
checkpoint, delivery on the driver. Only the time does not come from Spark, but from the offset,
where a replay would find it as well.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.delivery import Delivery
from streamer.engine.driver.writers import StreamWriter
from streamer.engine.report.result_frame import Frame
from streamer.engine.report.stream_metrics import Snapshot
from streamer.plan import Plan
from streamer.sdk.input.replayable import Chunk
from streamer.spark.query.source import SOURCE_SCHEMA
from streamer.spark.tasks.stages import build_frames
from streamer.tools.unit_tests.steps import ScriptStep
from streamer.window.settings.back_pressure import BackPressure

Piece = tuple[int, list[tuple[bytes, dict[str, Any], str | None]]]


class Messages:
    """Reads pieces: a partition, and messages, each as content, metadata and mark."""

    def read(self, piece: Piece, ex: Execution) -> Iterator[Chunk]:
        yield [[Message(raw, meta, error)] for raw, meta, error in piece[1]]

    def partition_of(self, piece: Piece) -> str:
        return str(piece[0])


def pieces_of(turn: ScriptStep) -> list[bytes]:
    return [
        pickle.dumps(
            (number, [(m.raw, dict(m.meta), m.error) for m in (one.message for one in group)])
        )
        for number, group in groupby(turn.messages, lambda one: one.partition)
    ]


def scripted_source(turns: Sequence[ScriptStep]) -> type[DataSource]:
    """Return a source that gives one turn to each micro-batch; offsets count turns."""
    # What the process that plans micro-batches gets is pickled: plain values only.
    steps = [(turn.time_ns, turn.ends_input, pieces_of(turn)) for turn in turns]
    starts = [sum(turn.restart for turn in turns[:n]) for n in range(len(turns) + 1)]
    runs = [turn.runs_batch for turn in turns]

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, Any]:
            return {"turn": -1, "ended": False, "start": "0", "time": 0}

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            following = start["turn"] + 1
            while following < len(steps) and not runs[following]:
                following += 1
            if following >= len(steps):
                return start
            time, ended, _ = steps[following]
            started = str(starts[following])
            ended = ended or (start["ended"] and start["start"] == started)
            # A jump of the clock is a blocked stream.
            before = start["time"]
            pressure = BackPressure(((before, time),), 0, time - before).to_fields()
            found = {"turn": following, "ended": ended, "start": started, "time": time}
            return {**found, "pressure": pressure}

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            offset = json.dumps(end)
            pieces = steps[end["turn"]][2] or [None]
            return [InputPartition((n, piece, offset)) for n, piece in enumerate(pieces)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int, bytes | None, str]]:
            yield partition.value

        def commit(self, end: dict[str, Any]) -> None:
            pass

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "scripted"

        def schema(self) -> str:
            return SOURCE_SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return Reader()

    return Source


@dataclass
class OnSpark:
    """What came out of each output in each turn that ran, and what was dropped in all."""

    outputs: list[list[bytes]]
    dropped: dict[str, int]


def run_on_spark(
    session: SparkSession, plan: Plan, turns: Sequence[ScriptStep], checkpoint: Path
) -> OnSpark:
    """Run the turns, one micro-batch each; the query is stopped and started at every restart."""
    streams = [io.BytesIO() for _ in plan.outputs]
    delivery = Delivery([StreamWriter(out) for out in streams], lambda *line: None, lambda: False)
    marks: list[list[int]] = [[0] for _ in streams]

    def deliver(batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        delivery.deliver(number, [Frame(*row) for row in rows])
        for mark, out in zip(marks, streams, strict=True):
            mark.append(out.tell())

    restarts = (n for n, turn in enumerate(turns) if turn.restart)
    for end in [*restarts, len(turns)]:
        if not any(turn.runs_batch for turn in turns[:end]):
            continue  # Spark's first micro-batch of a query runs at once, with a turn or without
        session.dataSource.register(scripted_source(turns[:end]))
        session.conf.set("spark.sql.shuffle.partitions", str(max(plan.shards, 1)))
        stream = session.readStream.format("scripted").load()
        query = (
            build_frames(plan, Messages(), stream)
            .writeStream.foreachBatch(deliver)
            .option("checkpointLocation", str(checkpoint))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    snapshot = Snapshot.of(delivery.statuses.values(), delivery.metrics.counts, delivery.batch)
    outputs = [
        [out.getvalue()[a:b] for a, b in zip(mark, mark[1:], strict=False)]
        for mark, out in zip(marks, streams, strict=True)
    ]
    return OnSpark(outputs, dict(snapshot.dropped))
