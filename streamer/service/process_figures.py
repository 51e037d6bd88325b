"""Metrics of the whole process: the versions that run, and what the JVM says of itself."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Final

from streamer import __version__
from streamer.service.samples import Sample

_SPARK_MODULE: Final = "streamer.spark.session"


def process_samples() -> Iterator[Sample]:
    """Return them; those of the JVM while Spark is up."""
    labels = {
        "version": __version__,
        "python": platform.python_version(),
        "spark": _version("pyspark"),
    }
    yield Sample.made("streamer_build_info", labels, 1)
    # Nobody is to wait for the import before there is a Spark.
    if _SPARK_MODULE not in sys.modules:
        return
    from streamer.spark.runtime_figures import runtime_figures

    for name, value in runtime_figures().items():
        yield Sample.made(name, {}, value)


_version = cache(version)
