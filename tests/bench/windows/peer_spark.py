"""Tumbling, hopping and session windows as one writes them by hand in PySpark.

`python tests/bench/windows/peer_spark.py KIND MASTER FILES OUT WORK` prints Spark's progress, a
JSON object a micro-batch.
"""

from __future__ import annotations

import sys

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tests.bench import peer_spark
from tests.bench.windows.jobs import EVERY, LATENESS, SIZE
from tests.bench.windows.sessions import GAP_MS

ACTIVITY = "user STRING, at TIMESTAMP, amount INT"
PRECISE = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


def lights(events: DataFrame, every: int) -> DataFrame:
    """Different cars, and passengers, of a light in a window."""
    window = F.window("created_at", f"{SIZE} seconds", f"{every} seconds")
    return (
        events.withWatermark("created_at", f"{LATENESS} seconds")
        .groupBy(window, "traffic_light")
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


def sessions(events: DataFrame) -> DataFrame:
    """Number of events, and sum of amounts, of a user's session."""

    def shown(time: Column) -> Column:
        return F.date_format(time, PRECISE)

    return (
        events.withWatermark("at", f"{LATENESS} seconds")
        .groupBy(F.session_window("at", f"{GAP_MS} milliseconds"), "user")
        .agg(F.count("*").alias("events"), F.sum("amount").alias("total"))
        .select(
            "user",
            shown(F.col("session_window.start")).alias("start"),
            # Spark's sessions end when the gap after the last event does.
            shown(F.col("session_window.end") - F.expr(f"INTERVAL '{GAP_MS / 1000}' SECOND")).alias(
                "end"
            ),
            "events",
            "total",
        )
    )


def main(kind: str, master: str, files: str, out: str, work: str) -> None:
    """Run the job over all files, one a micro-batch."""
    spark = peer_spark.session(master)
    if kind == "session":
        windows = sessions(peer_spark.events(spark, files, ACTIVITY))
    else:
        every = EVERY if kind == "hopping" else SIZE
        windows = lights(peer_spark.events(spark, files), every)
    peer_spark.run(windows, out, work)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
