"""Metrics of Spark's JVM and its executors, for the whole process."""

from __future__ import annotations

import threading
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

from streamer.core.redaction import redact_urls
from streamer.spark.cluster.executors import describe_executors, list_executors
from streamer.spark.compat import FALLBACKS, java_packages

_READ_LOCK: Final = threading.Lock()
_MAX_EXECUTORS: Final = 200


def read_runtime_metrics() -> dict[str, float]:
    """Return the figures of the JVM by the names of their metrics; none while Spark is not up.

    It takes some milliseconds. Nothing is raised: a JVM that has ended has no figures.
    """
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return {}
    try:
        with _READ_LOCK:
            return _read_metrics(context)
    except (Py4JError, OSError, AttributeError):
        return {}


def read_runtime_facts() -> dict[str, Any]:
    """Return facts of Spark for people: Java, master, heap, and executors; none without Spark."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return {}
    try:
        with _READ_LOCK:
            jvm = java_packages(context)
            heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
            return {
                "java": jvm.java.lang.System.getProperty("java.version"),
                "master": redact_urls(context.master),
                "heap_used": heap.getUsed(),
                "heap_max": heap.getMax(),
                "executors": describe_executors(context, _MAX_EXECUTORS),
            }
    except (Py4JError, OSError, AttributeError):
        return {}


def _read_metrics(context: SparkContext) -> dict[str, float]:
    jvm = java_packages(context)
    management = jvm.java.lang.management.ManagementFactory
    heap = management.getMemoryMXBean().getHeapMemoryUsage()
    collecting = sum(
        max(one.getCollectionTime(), 0) for one in management.getGarbageCollectorMXBeans()
    )
    known_executors = list_executors(context)
    return {
        "jvm_heap_used_bytes": heap.getUsed(),
        "jvm_heap_max_bytes": heap.getMax(),
        "jvm_gc_seconds_total": collecting / 1e3,
        "jvm_threads": management.getThreadMXBean().getThreadCount(),
        "spark_executors": sum(one.active for one in known_executors),
        "spark_executors_lost_total": sum(not one.active for one in known_executors),
        **FALLBACKS.counts(),
    }
