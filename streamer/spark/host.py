"""One Spark for many streams: a session for each, a fair share for each, and one JVM for all."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streamer.spark.session import LogLine, start_session

SETTINGS: Mapping[str, str] = {
    # Micro-batches of all streams share the cores; first come, first served would let one that is
    # far behind hold up all others.
    "spark.scheduler.mode": "FAIR",
    # A query that does not stop is left behind, and not waited for without end.
    "spark.sql.streaming.stopTimeout": "15s",
}


class SparkHost:
    """A Spark that streams start their queries in."""

    def __init__(
        self,
        name: str,
        master: str,
        conf: Mapping[str, str],
        log: LogLine,
        level: str,
        keep_open: tuple[int, ...] = (),
    ) -> None:
        """Start Spark; see `start_session`.

        Raises:
            StreamerError: it did not start.
        """
        self._session = start_session(
            name, master, {**SETTINGS, **conf}, log, level, keep_open=keep_open
        )
        self._lock = threading.Lock()
        self._taken: set[int] = set()

    def session(self, share: int) -> SparkSession:
        """Return a session for a run of a stream, in whose thread it is to be started.

        Settings, sources and functions that are registered in it are its own.

        Args:
            share: the number of the stream's share, see `take_share`.
        """
        context = self._session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", f"stream-{share}")
        return self._session.newSession()

    def take_share(self) -> int:
        """Return the number of a share of the cores that no other stream has.

        Spark keeps a pool for every name that it has heard, so numbers are used again.
        """
        with self._lock:
            share = next(n for n in range(len(self._taken) + 1) if n not in self._taken)
            self._taken.add(share)
            return share

    def give_share(self, share: int) -> None:
        """Give a share back."""
        with self._lock:
            self._taken.discard(share)

    def alive(self) -> bool:
        """Whether there is still a JVM."""
        try:
            return not self._session.sparkContext._jsc.sc().isStopped()
        except (Py4JError, OSError):
            return False

    def stop(self) -> None:
        """Stop Spark, if it has not gone by itself."""
        try:
            self._session.stop()
        except (Py4JError, OSError):
            return
