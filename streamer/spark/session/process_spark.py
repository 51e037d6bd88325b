"""The Spark of a Python program: one for all streams that it runs, started by the first of them.

A process has one Spark at a time. It stays when a stream has ended, so that the next one starts
faster, and ends with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.report.start_progress import NO_PROGRESS, StartProgress
from streamer.spark.compat import close_gateway, has_context
from streamer.spark.session.session_start import start_session
from streamer.spark.session.shared_spark import SharedSpark


class SparkInUseError(StreamerError):
    """The process has a Spark that a stream cannot use, or that streams still use."""


@dataclass(frozen=True, slots=True)
class SparkRequest:
    """The Spark that a stream needs.

    Attributes:
        master: a Spark master URL.
        conf: the settings of its config, see `stream_spark_settings`.
        level: the program's log level; of streams that share a Spark, that of the first counts.
    """

    master: str
    conf: Mapping[str, str] = field(repr=False)
    level: str

    def list_differences(self, other: SparkRequest) -> list[str]:
        """Return the names of settings that differ; values may be secret."""
        names = {"spark.master"} if self.master != other.master else set()
        for name in {*self.conf, *other.conf}:
            if self.conf.get(name) != other.conf.get(name):
                names.add(name)
        return sorted(names)


class ProcessSpark:
    """The Spark of this process. Threads may share it."""

    def __init__(self) -> None:
        """Begin without Spark."""
        self._lock = threading.Lock()
        self._spark: SharedSpark | None = None
        self._request = SparkRequest("", {}, "")
        self._users = 0

    def acquire(
        self, request: SparkRequest, log: LogLine, progress: StartProgress = NO_PROGRESS
    ) -> SharedSpark:
        """Return the Spark, started if there is none; `release` belongs to each call.

        Args:
            request: the settings.
            log: takes log lines of the start.
            progress: of the stream that waits for it.

        Raises:
            SparkInUseError: other streams use a Spark with other settings, or the program has
                started a Spark of its own.
            StreamerError: it does not start.
        """
        with self._lock:
            if self._spark is not None and not self._is_usable(self._spark, request):
                self._stop_spark()
            if self._spark is None:
                self._spark = _start_spark(request, log, progress)
                self._request = request
            self._users += 1
            return self._spark

    def release(self) -> None:
        """Note that a stream does not use it any more."""
        with self._lock:
            self._users -= 1

    def stop(self) -> None:
        """Stop Spark, and end its JVM.

        Raises:
            SparkInUseError: streams use it.
        """
        with self._lock:
            if self._users:
                streams = "a stream uses" if self._users == 1 else f"{self._users} streams use"
                raise SparkInUseError(f"{streams} the Spark of this process; stop them first")
            self._stop_spark()

    def _is_usable(self, spark: SharedSpark, request: SparkRequest) -> bool:
        if not spark.is_alive():
            return False
        differences = self._request.list_differences(request)
        if differences and self._users:
            raise SparkInUseError(
                "other streams of this process use a Spark with other settings "
                f"({', '.join(differences)}); stop them first, give both streams the same "
                "settings, or run this one in a process of its own"
            )
        return not differences

    def _stop_spark(self) -> None:
        spark, self._spark = self._spark, None
        if spark is None:
            return
        with suppress(Py4JError, OSError):
            spark.stop()
        # A JVM that was killed leaves PySpark's context behind.
        with suppress(Py4JError, OSError):
            spark.base_session.sparkContext.stop()
        close_gateway()


def _start_spark(request: SparkRequest, log: LogLine, progress: StartProgress) -> SharedSpark:
    if has_context():
        raise SparkInUseError(
            "this process has a Spark session already, and a process has one at a time; stop it "
            "(`spark.stop()`), or run the stream in a process of its own"
        )
    # The connection to the JVM of a session that the program has stopped.
    close_gateway()

    def start(settings: Mapping[str, str]) -> SparkSession:
        return start_session(
            "streamer",
            request.master,
            {**settings, **request.conf},
            log,
            request.level,
            progress=progress,
        )

    return SharedSpark(start, with_fork_server=request.master.startswith("local"))


PROCESS_SPARK: Final = ProcessSpark()
"""The one of this process."""
