"""The traffic-light job as one writes it by hand in PySpark, with all work in the JVM.

`python tests/bench/peer_spark.py MASTER FILES OUT WORK` prints Spark's progress, a JSON object a
micro-batch. Watermark, RocksDB and as many shuffle partitions as cores: what one sets after reading
Spark's documentation. Windows are (start, end] in the product and [start, end) in Spark, so that
times in whole seconds are put one second later here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SCHEMA = "traffic_light STRING, created_at TIMESTAMP, registration_plate STRING, passengers INT"


def session(master: str) -> SparkSession:
    """Start Spark as one does who has read how to tune such a job."""
    cores = master.partition("[")[2].rstrip("]")
    spark = (
        SparkSession.builder.master(master)
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", cores if cores.isdigit() else "4")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def events(spark: SparkSession, files: str, schema: str = SCHEMA) -> DataFrame:
    """Read the events, a file a micro-batch."""
    return (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", 1)
        .load(files)
        .select(F.from_json("value", schema).alias("e"))
        .select("e.*")
    )


def run(windows: DataFrame, out: str, work: str) -> None:
    """Write what comes out until the files end; print the progress."""
    query = (
        windows.writeStream.format("json")
        .outputMode("append")
        .option("checkpointLocation", str(Path(work) / "checkpoint"))
        .option("path", out)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for progress in query.recentProgress:
        print(json.dumps(json.loads(progress.json)), flush=True)


def main(master: str, files: str, out: str, work: str) -> None:
    """Run the job over all files, one a micro-batch."""
    spark = session(master)
    windows = (
        events(spark, files)
        .withWatermark("created_at", "5 seconds")
        .groupBy(F.window("created_at", "10 seconds", "10 seconds", "1 second"), "traffic_light")
        .agg(
            F.size(F.collect_set("registration_plate")).alias("total_cars"),
            F.sum("passengers").alias("passengers"),
        )
        .select(
            "traffic_light",
            F.date_format(
                F.col("window.end") - F.expr("INTERVAL 1 SECOND"), "yyyy-MM-dd'T'HH:mm:ss'Z'"
            ).alias("created_at"),
            "total_cars",
            "passengers",
        )
    )
    run(windows, out, work)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
