"""One Spark for many streams: a session for each, a fair share for each, and one JVM for all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streamer.spark.compat import is_spark_alive, java_gateway
from streamer.spark.fork_server.fork_server import ForkServer, publish_fork_socket

SETTINGS: Mapping[str, str] = {
    # Micro-batches of all streams share the cores; first come, first served would let one that is
    # far behind hold up all others.
    "spark.scheduler.mode": "FAIR",
    # A query that does not stop is left behind, and not waited for without end.
    "spark.sql.streaming.stopTimeout": "15s",
}


class SharedSpark:
    """A Spark that streams start their queries in."""

    def __init__(
        self, start: Callable[[Mapping[str, str]], SparkSession], with_fork_server: bool = True
    ) -> None:
        """Start Spark.

        Args:
            start: starts it with settings, see `start_session`.
            with_fork_server: whether Spark's Python here is a launcher of ours, and not one that
                workers too know by its path: then its processes are forked, which takes a tenth.

        Raises:
            StreamerError: it did not start.
        """
        self._fork_server = ForkServer(os.environ) if with_fork_server else None
        try:
            # The JVM hands on to what it starts the environment that it finds when it starts.
            with publish_fork_socket(self._fork_server):
                if self._fork_server is not None:
                    self._fork_server.start()
                self._session = start(SETTINGS)
        except BaseException:
            self._close_fork_server()
            raise
        self._lock = threading.Lock()
        self._used_shares: set[int] = set()

    @property
    def base_session(self) -> SparkSession:
        """The session that it was started with, which is no stream's."""
        return self._session

    def new_session(self, share: int) -> SparkSession:
        """Return a session for a run of a stream, in whose thread it is to be started.

        Settings, sources and functions that are registered in it are its own.

        Args:
            share: the number of the stream's share, see `acquire_share`.
        """
        context = self._session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", f"stream-{share}")
        return self._session.newSession()

    def acquire_share(self) -> int:
        """Return the number of a share of the cores that no other stream has.

        Spark keeps a pool for every name that it was given, so numbers are used again.
        """
        with self._lock:
            share = next(n for n in range(len(self._used_shares) + 1) if n not in self._used_shares)
            self._used_shares.add(share)
            return share

    def release_share(self, share: int) -> None:
        """Give a share back, and what calls from Java have left."""
        with self._lock:
            self._used_shares.discard(share)
        self._close_idle_callbacks()

    def _close_idle_callbacks(self) -> None:
        """Close connections on which Java has called Python and does not now.

        There is one, with a thread of Python's, for every thread that ever called, and a query has
        several. py4j keeps them when those threads are gone, and opens others for those that stay.
        """
        client = java_gateway(self._session.sparkContext)._gateway_client
        try:
            JavaObject("GATEWAY_SERVER", client).getCallbackClient().periodicCleanup()
        except (Py4JError, OSError):
            return

    def is_alive(self) -> bool:
        """Whether there is still a JVM."""
        return is_spark_alive(self._session.sparkContext)

    def kill(self) -> None:
        """End the JVM before it writes anything more."""
        process = java_gateway(self._session.sparkContext).proc
        # YARN's application master is nobody's child, and ends with this program.
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """Stop Spark, if it has not gone by itself."""
        try:
            self._session.stop()
        except (Py4JError, OSError):
            return
        finally:
            self._close_fork_server()

    def _close_fork_server(self) -> None:
        if self._fork_server is not None:
            self._fork_server.close()
