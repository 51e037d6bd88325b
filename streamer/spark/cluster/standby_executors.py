"""A Spark on a cluster that has no executors until it is needed.

A service that stands by has its Spark ready, and leaves the cores to the one that is active.
"""

from __future__ import annotations

import threading
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streamer.spark.cluster.executors import list_executors
from streamer.spark.compat import java_packages, java_spark

_POLL_INTERVAL_S: Final = 0.5
"""Seconds between two looks whether an executor has come."""

_ALL_EXECUTORS: Final = 100_000
"""More executors than a standalone cluster has: it gives as many as `spark.cores.max` allows."""
_DEFAULT_EXECUTORS: Final = 2
"""Executors that Kubernetes and YARN give when no number was asked for."""


class ExecutorRelease:
    """Releases executors to the cluster, from its beginning until `request_executors`."""

    def __init__(self, session: SparkSession) -> None:
        """Begin.

        Args:
            session: a cluster's. Where executors come and go with the work, they go by themselves.
        """
        self._context = session.sparkContext
        conf = self._context.getConf()
        self._is_elastic = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
        default = (
            _ALL_EXECUTORS if self._context.master.startswith("spark:") else _DEFAULT_EXECUTORS
        )
        self._executor_count = int(conf.get("spark.executor.instances") or default)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._release_executors, daemon=True, name="rest")
        if not self._is_elastic:
            self._thread.start()

    def _release_executors(self) -> None:
        try:
            spark = java_spark(self._context)
            nothing = java_packages(self._context).scala.Predef.Map().empty()
            spark.requestTotalExecutors(0, 0, nothing)
            # Those that were on their way still come.
            while not self._ended.wait(_POLL_INTERVAL_S):
                for one in list_executors(self._context):
                    if one.active:
                        spark.killExecutor(one.name)
        except (Py4JError, OSError, AttributeError):
            return  # Spark was stopped, or its JVM has gone.

    def request_executors(self) -> None:
        """Request the executors that the stream is to have."""
        if self._is_elastic:
            return
        self._ended.set()
        self._thread.join()
        java_spark(self._context).requestExecutors(self._executor_count)
