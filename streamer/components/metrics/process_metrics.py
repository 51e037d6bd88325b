"""The metrics of the whole process, beside those of its streams."""

from __future__ import annotations

from typing import Final

from streamer.components.metrics.metric import Metric, MetricKind

PROCESS_METRICS: Final = (
    Metric(
        "streamer_build_info",
        MetricKind.GAUGE,
        ("version", "python", "spark"),
        "1",
        "The versions that run.",
    ),
    Metric(
        "jvm_heap_used_bytes",
        MetricKind.GAUGE,
        (),
        "bytes",
        "The driver's Java heap that is in use.",
    ),
    Metric(
        "jvm_heap_max_bytes",
        MetricKind.GAUGE,
        (),
        "bytes",
        "How large it may become.",
        "spark.conf.spark.driver.memory sets it.",
    ),
    Metric(
        "jvm_gc_seconds_total",
        MetricKind.COUNTER,
        (),
        "seconds",
        "How long the driver's JVM has collected garbage.",
        "More than a tenth of the time: a larger heap, or less state.",
    ),
    Metric("jvm_threads", MetricKind.GAUGE, (), "threads", "Threads of the driver's JVM."),
    Metric(
        "spark_executors",
        MetricKind.GAUGE,
        (),
        "executors",
        "Executors that work; 0 on a single machine.",
    ),
    Metric(
        "spark_executors_lost_total",
        MetricKind.COUNTER,
        (),
        "executors",
        "Executors that are gone since the start, by Spark's memory of them.",
        "The log says why each has gone.",
    ),
)
