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
    Metric(
        "spark_unforked_python_total",
        MetricKind.COUNTER,
        (),
        "processes",
        "Python processes of Spark's on this machine that were started whole, where they are forked"
        " from one that has imported all: each takes a second of CPU more.",
        "The log says why the first was; memory or process limits that are reached, or another "
        "PySpark.",
    ),
    Metric(
        "spark_missing_modules_total",
        MetricKind.COUNTER,
        (),
        "modules",
        "Modules that Spark's Python processes import ahead and that are not there, so that workers"
        " start more slowly.",
        "Install the version of PySpark that streamer requires.",
    ),
    Metric(
        "spark_unknown_monitors_total",
        MetricKind.COUNTER,
        (),
        "times",
        "How often the threads that Spark leaves behind a stream were not found to be ended: the "
        "JVM's heap grows with each start of a stream.",
        "Install the version of PySpark that streamer requires.",
    ),
)
