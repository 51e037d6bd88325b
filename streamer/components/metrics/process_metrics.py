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
        "The running versions.",
    ),
    Metric(
        "jvm_heap_used_bytes",
        MetricKind.GAUGE,
        (),
        "bytes",
        "Used Java heap of the driver.",
    ),
    Metric(
        "jvm_heap_max_bytes",
        MetricKind.GAUGE,
        (),
        "bytes",
        "Maximum of the heap.",
        "spark.conf.spark.driver.memory sets it.",
    ),
    Metric(
        "jvm_gc_seconds_total",
        MetricKind.COUNTER,
        (),
        "seconds",
        "Time of garbage collection in the driver's JVM.",
        "More than a tenth of the time: a larger heap, or less state.",
    ),
    Metric("jvm_threads", MetricKind.GAUGE, (), "threads", "Threads of the driver's JVM."),
    Metric(
        "spark_executors",
        MetricKind.GAUGE,
        (),
        "executors",
        "Active executors; 0 on a single machine.",
    ),
    Metric(
        "spark_executors_lost_total",
        MetricKind.COUNTER,
        (),
        "executors",
        "Executors lost since the start, as far as Spark remembers them.",
        "The log has the reason for each.",
    ),
    Metric(
        "spark_unforked_python_total",
        MetricKind.COUNTER,
        (),
        "processes",
        "Spark's Python processes on this machine that were started without a fork from the "
        "prepared process: each takes a second of CPU more.",
        "The log has the reason for the first one: limits of memory or processes, or another "
        "PySpark.",
    ),
    Metric(
        "spark_missing_modules_total",
        MetricKind.COUNTER,
        (),
        "modules",
        "Missing modules that Spark's Python processes import in advance; workers start more "
        "slowly.",
        "Install the version of PySpark that streamer requires.",
    ),
    Metric(
        "spark_unknown_monitors_total",
        MetricKind.COUNTER,
        (),
        "times",
        "Failures to check that the threads of a stopped stream have ended: the JVM's heap "
        "grows with each start of a stream.",
        "Install the version of PySpark that streamer requires.",
    ),
    Metric(
        "spark_planned_frames_total",
        MetricKind.COUNTER,
        (),
        "times",
        "Starts of a stream for which Spark plans a second query in each micro-batch: 10 ms of "
        "CPU more.",
        "Install the version of PySpark that streamer requires; the log has the reason.",
    ),
    Metric(
        "spark_costly_batches_total",
        MetricKind.COUNTER,
        (),
        "parts",
        "Parts of Spark that cost each micro-batch CPU for nothing and could not be taken out: up "
        "to 10 ms each.",
        "Install the version of PySpark that streamer requires; the log has the reason.",
    ),
    Metric(
        "spark_forked_files_total",
        MetricKind.COUNTER,
        (),
        "times",
        "Starts of Spark with a process for each file of a checkpoint: a micro-batch costs "
        "20 ms of CPU more.",
        "Install the version of PySpark that streamer requires; the log has the reason.",
    ),
)
