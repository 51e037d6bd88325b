"""The traffic-light windows as one writes them by hand in PySpark.

`python in_pyspark.py MASTER DIRECTORY OUT WORK`. The session is that of `tests.bench.peer_spark`,
tuned as Spark's documentation tells: RocksDB, as many shuffle partitions as cores.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions as F

from tests.bench.peer_spark import SCHEMA, session


def main(master: str, directory: str, out: str, work: str) -> None:
    """Run the job until the files end, one a micro-batch."""
    spark = session(master)
    windows = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .json(directory)
        .withWatermark("created_at", "5 seconds")
        .groupBy(F.window("created_at", "10 seconds"), "traffic_light")
        .agg(
            F.size(F.collect_set("registration_plate")).alias("total_cars"),
            F.sum("passengers").alias("passengers"),
        )
        .select(
            "traffic_light",
            F.date_format("window.end", "yyyy-MM-dd'T'HH:mm:ss'Z'").alias("created_at"),
            "total_cars",
            "passengers",
        )
    )
    query = (
        windows.writeStream.format("json")
        .outputMode("append")
        .option("checkpointLocation", str(Path(work) / "checkpoint"))
        .option("path", out)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
