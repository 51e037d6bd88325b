"""Metrics of the whole process: the versions that run, and what the JVM says of itself."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Final

from streamer import __version__
from streamer.service.monitoring.metric_samples import Sample

_SPARK_MODULE: Final = "streamer.spark.session.session_start"


def process_samples() -> Iterator[Sample]:
    """Return the samples; those of the JVM while Spark is up."""
    labels = {
        "version": __version__,
        "python": platform.python_version(),
        "spark": package_version("pyspark"),
    }
    yield Sample.create("streamer_build_info", labels, 1)
    if not is_spark_loaded():
        return
    from streamer.spark.session.runtime_metrics import read_runtime_metrics

    for name, value in read_runtime_metrics().items():
        yield Sample.create(name, {}, value)


def is_spark_loaded() -> bool:
    """Return whether Spark was started, or is about to be: nobody is to wait for its import."""
    return _SPARK_MODULE in sys.modules


package_version = cache(version)
