"""Bare micro-batches of Spark, with the product's settings: `python bare_spark.py MASTER WORK`.

A row of Spark's own source, one for each micro-batch, goes through `mapInArrow`, with windows
through `transformWithState` as well, and comes to the driver as Arrow. Nothing of the product runs.
For each shape it prints a line of JSON: seconds of each micro-batch, and CPU seconds of one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamer.spark.session.session_start import start_session
from tests.bench.process_tree import Tree

WARM_UP = 40
MEASURED = 100
_SCHEMA = "shard int, body binary"
_LONGEST_S = 120


class Keeper(StatefulProcessor):
    """Keeps the newest row of a shard."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._rows = handle.getMapState("rows", "pane long, seq int", "body binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Keep a row, and give it back."""
        for row in rows:
            self._rows.updateValue((0, 0), (bytes(row.body),))
            yield Row(shard=key[0], body=bytes(row.body))

    def close(self) -> None:
        """Nothing is held."""


def label(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make a row of a shard of each row."""
    for batch in batches:
        count = batch.num_rows
        shards = pa.array([0] * count, pa.int32())
        yield pa.RecordBatch.from_arrays(
            [shards, pa.array([b"x" * 120] * count, pa.binary())], names=["shard", "body"]
        )


def measure(spark: SparkSession, work: Path, has_state: bool) -> None:
    """Run micro-batches one after another; print what they took."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1")
    rows = source.option("numPartitions", "1").load().mapInArrow(label, _SCHEMA)
    if has_state:
        rows = rows.groupBy("shard").transformWithState(Keeper(), _SCHEMA, "append", "None")
    ends: list[float] = []

    def take(batch: DataFrame, number: int) -> None:
        batch.toArrow()
        ends.append(time.time())

    tree = Tree(os.getpid())
    checkpoint = str(work / ("state" if has_state else "stateless"))
    writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="0 seconds").start()
    until = time.time() + _LONGEST_S
    while len(ends) < WARM_UP + MEASURED + 1 and time.time() < until and query.isActive:
        time.sleep(0.05)
    query.stop()
    tree.stop()
    if len(ends) <= WARM_UP + 1:
        raise RuntimeError(f"bare Spark made {len(ends)} micro-batches: {query.exception()}")
    first, last = ends[WARM_UP], ends[-1]
    count = len(ends) - WARM_UP - 1
    found = {
        "has_state": has_state,
        "seconds": [b - a for a, b in zip(ends[WARM_UP:], ends[WARM_UP + 1 :], strict=False)],
        "cpu": (tree.cpu_at(last) - tree.cpu_at(first)) / count,
    }
    print(json.dumps(found), flush=True)


def main(master: str, work: str) -> None:
    """Measure both shapes."""
    spark = start_session("bare", master, {}, lambda *line: None, "INFO")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    for has_state in (False, True):
        measure(spark, Path(work), has_state)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
