"""First steps of a run: the checkpoint's lock, Spark's JVM, the Python that workers fork from.

All three take time for themselves, so they begin before anything else and are waited for last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from streamer.cli.run_log import RunLog
from streamer.config import Config
from streamer.engine.report.start_progress import StartProgress
from streamer.plan import Plan
from streamer.plan.checkpoint_dir import is_remote
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.run.stream_run import StreamRun


class SparkStart:
    """Spark for one stream, which boots while the stream is opened."""

    def __init__(
        self,
        config: Config,
        plan: Plan,
        lock: int,
        log: RunLog,
        progress: StartProgress,
        checkpoint: str = "",
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start the JVM, and return at once.

        Args:
            config: the config.
            plan: its plan.
            lock: the file descriptor of the checkpoint's lock, which the JVM inherits.
            log: takes what Spark has to say.
            progress: called when Java is started, and when Spark is.
            checkpoint: its URL, where Spark alone reaches it.
            more: settings that reach it.

        Raises:
            StreamerError: there is no Java, or a jar is missing.
        """
        from streamer.spark.fork_server.fork_server import ForkServer, publish_fork_socket
        from streamer.spark.jars.kafka_jars import stream_spark_settings
        from streamer.spark.session.session_start import SessionStart, SparkApplication

        conf = {**more, **stream_spark_settings(plan, config.spark, os.environ, log, checkpoint)}
        application = SparkApplication(
            f"streamer {plan.name}",
            plan.master,
            conf,
            log.level,
            keep_open=(lock,),
            checks_workers=not checkpoint,
            has_state=plan.window is not None,
        )
        self._session: Any = None
        self._has_checked_archive = False
        # A cluster's workers start Python by a path that they know.
        self._forks = ForkServer(os.environ) if plan.master.startswith("local") else None
        try:
            with publish_fork_socket(self._forks):
                # The fork server not before: on two cores its imports would hold up the JVM, which
                # is waited for, while none of them is needed before Spark has started.
                self._start = SessionStart(application, log, self._start_forks, progress)
        except BaseException:
            if self._forks is not None:
                self._forks.close()
            raise

    def _start_forks(self) -> None:
        if self._forks is not None:
            self._forks.start()

    def wait_for_session(self) -> Any:
        """Wait for Spark, and return its session.

        Raises:
            StreamerError: it did not start.
        """
        if self._session is None:
            self._session = self._start.finish()
        return self._session

    def make_archive(self) -> None:
        """Let later starts have an archive of classes, where this one has found none; once."""
        if self._has_checked_archive:
            return
        self._has_checked_archive = True
        if self._start.lacks_archive:
            # Imported here: one start of a machine needs it.
            from streamer.cli.warm import make_in_background

            make_in_background(os.environ)

    def close(self) -> None:
        """End what was started and is not of the session."""
        self._start.discard_bad_archive()
        if self._session is None:
            self._start.cancel()
        if self._forks is not None:
            self._forks.close()


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run that has its checkpoint, and whose Spark boots.

    Attributes:
        life: the run.
        spark: its Spark.
    """

    life: StreamRun
    spark: SparkStart


def is_local_run(plan: Plan, checkpoint: str) -> bool:
    """Whether checkpoint and Spark are of this machine: then neither is waited for.

    On a cluster the workers' environment may be packed first, and the checkpoint of an object store
    is reached by Spark alone; until then a stream should answer HTTP requests.
    """
    return plan.master.startswith("local") and not is_remote(checkpoint)


def start_run(
    config: Config, plan: Plan, checkpoint: str, log: RunLog, view: StreamView
) -> RunStart:
    """Take the checkpoint, and start Spark; where only Spark reaches the checkpoint, wait for it.

    Raises:
        StreamerError: the checkpoint is of no use, or another program has it; or Spark did not
            start.
    """
    if not is_remote(checkpoint):
        life = StreamRun(config, plan, checkpoint, log, view)
        try:
            return RunStart(life, SparkStart(config, plan, life.checkpoint.lock, log, view.start))
        except BaseException:
            life.checkpoint.close()
            raise
    from streamer.spark.checkpoint.remote_checkpoint import file_manager_settings, start_and_acquire
    from streamer.spark.session.session_start import check_cluster_workers

    starts: list[SparkStart] = []

    def start(lock: int) -> Any:
        more = file_manager_settings(checkpoint)
        starts.append(SparkStart(config, plan, lock, log, view.start, checkpoint, more))
        return starts[0].wait_for_session()

    log("INFO", "Starting Spark, which reaches the checkpoint", {})
    remote_checkpoint, session = start_and_acquire(checkpoint, os.environ, start, log)
    # Not before: a cluster whose cores the other program has would be waited for.
    check_cluster_workers(session, log)
    return RunStart(StreamRun(config, plan, remote_checkpoint, log, view), starts[0])
