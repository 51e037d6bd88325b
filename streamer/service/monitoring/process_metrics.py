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
        "spark": _package_version("pyspark"),
    }
    yield Sample.create("streamer_build_info", labels, 1)
    # Nobody is to wait for the import before there is a Spark.
    if _SPARK_MODULE not in sys.modules:
        return
    from streamer.spark.session.runtime_metrics import read_runtime_metrics

    for name, value in read_runtime_metrics().items():
        yield Sample.create(name, {}, value)


_package_version = cache(version)
