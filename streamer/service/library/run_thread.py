"""The thread that runs one stream of a program: from the lock of its checkpoint to its release."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.core.redaction import Redaction
from streamer.engine.driver.clock_watch import ClockWatch
from streamer.engine.driver.failure_diagnosis import root_cause_line
from streamer.engine.report.start_progress import StartPhase
from streamer.plan import Plan
from streamer.plan.checkpoint_dir import is_remote
from streamer.service.api.stream_server import bound_connections, serve_stream
from streamer.service.library.run_log import LibraryLog
from streamer.service.library.status import (
    RunState,
    StreamStatus,
    WindowTable,
    make_status,
    make_window_table,
)
from streamer.service.monitoring.metrics_export import export_metrics
from streamer.service.monitoring.stream_condition import describe_condition, read_condition
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.run.revision_switch import DrainInterruptedError
from streamer.service.run.shared_start import open_run, start_run
from streamer.service.run.stream_run import StreamRun

if TYPE_CHECKING:
    from streamer.spark.session.process_spark import SparkRequest

_POLL_INTERVAL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class RunSettings:
    """A stream that is to run.

    Attributes:
        name: its name.
        config: its config.
        plan: the plan of that.
        checkpoint: the checkpoint directory.
        level: the lowest level of its log.
        redaction: takes the config's secrets out of texts.
    """

    name: str
    config: Config = field(repr=False)
    plan: Plan = field(repr=False)
    checkpoint: str
    level: str
    redaction: Redaction = field(repr=False)


class RunThread:
    """Runs a stream, once. All its methods return at once.

    Attributes:
        name: the stream's name.
        checkpoint: the checkpoint directory.
        log: the stream's log.
        thread: the thread.
        has_started: set when the stream runs, or is over.
        is_over: set when nothing of it runs any more.
        failure: why it has failed, without secrets; empty when it has not.
        on_over: called when it is over, in the thread.
    """

    def __init__(self, settings: RunSettings) -> None:
        """Take the stream."""
        self.name, self.checkpoint = settings.name, settings.checkpoint
        self._settings = settings
        self._view = StreamView(settings.config)
        self.log = LibraryLog(settings.name, settings.level, settings.redaction, self._view)
        self.has_started, self.is_over = threading.Event(), threading.Event()
        self.failure = ""
        self.on_over: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._state = RunState.STARTING
        self._stop_requested, self._drain_requested = threading.Event(), threading.Event()
        self._wake = threading.Event()
        self._stop_timeout: float | None = None
        self._run: StreamRun | None = None
        self._last_windows: Mapping[str, Any] = {}
        self._url = ""
        # A program that ends stops its streams, and does not wait for one without an end.
        self.thread = threading.Thread(
            target=self._run_to_end, name=f"stream {settings.name}", daemon=True
        )

    def start(self) -> None:
        """Start the stream, in the thread."""
        self.thread.start()

    def request_stop(self, timeout: float | None) -> None:
        """Request a stop; see `StreamHandle.stop`."""
        with self._lock:
            if self._stop_requested.is_set() or self._state.is_end:
                return
            self._stop_timeout = timeout
            if self._state != RunState.DRAINING:
                self._state = RunState.STOPPING
            run = self._run
            self._stop_requested.set()
            self._wake.set()
        if run is not None and run.is_opened:
            run.interrupt()

    def request_drain(self) -> None:
        """Request a drain; see `StreamHandle.drain`."""
        self._drain_requested.set()
        self._wake.set()

    def read_status(self) -> StreamStatus:
        """Return the status of the stream now."""
        settings, view = self._settings, self._view
        state, current = self._state, view.current_state()
        condition = str(state)
        if state in (RunState.STARTING, RunState.RUNNING):
            now = time.time()
            condition = describe_condition(read_condition(view, now), now)
        is_known = state == RunState.RUNNING
        return make_status(
            settings.name,
            state,
            current.snapshot,
            settings.redaction,
            condition=condition,
            per_second=view.figures.rates.rate("in") if is_known else None,
            error=self.failure or (current.problem if not state.is_end else ""),
            checkpoint=settings.checkpoint,
            url=self._url,
        )

    def read_windows(self, limit: int) -> WindowTable:
        """Return the windows as of the newest micro-batch."""
        run, document = self._run, self._last_windows
        if run is not None and self._view.is_running:
            document = run.list_windows()
        return make_window_table(self.name, document, self._settings.redaction, limit)

    def _move_to(self, state: RunState) -> None:
        with self._lock:
            # A stop that is on its way stays that until it is done.
            if not self._stop_requested.is_set() or state.is_end:
                self._state = state

    def _run_to_end(self) -> None:
        try:
            state = self._execute()
        except DrainInterruptedError:
            state = RunState.STOPPED
        except BaseException as e:
            state = self._note_failure(e)
        self._run = None
        self._move_to(state)
        self._view.set_ended()
        self.has_started.set()
        self.is_over.set()
        self.on_over()

    def _note_failure(self, error: BaseException) -> RunState:
        """Return the state that a stream comes to; an error after a stop is only logged."""
        text = str(error)
        if isinstance(error, BrokenPipeError):
            text = "the standard output was closed by its reader"
        elif not isinstance(error, StreamerError):
            text = root_cause_line(f"{type(error).__name__}: {error}")
        if self._stop_requested.is_set() and not self.has_started.is_set():
            self.log("WARN", f"The start was broken off: {text}", {})
            return RunState.STOPPED
        self.log("ERROR", text, {})
        self.failure = self._settings.redaction.redact_text(text)
        return RunState.FAILED

    def _execute(self) -> RunState:
        """Run the stream; return the state that it comes to."""
        settings, view, log = self._settings, self._view, self.log
        view.start.begin(StartPhase.PLAN)
        if is_remote(settings.checkpoint):
            raise StreamerError(
                f"the checkpoint {settings.checkpoint} is elsewhere, which is for `streamer -c` "
                "and `streamer streams`; name a directory of this machine"
            )
        if self._stop_requested.is_set():
            return RunState.STOPPED
        with ExitStack() as closing:
            if _serves_http(view):
                self._url = closing.enter_context(serve_stream(view, log))
            else:
                bound_connections(settings.config.http)
            closing.enter_context(export_metrics(settings.config.metrics, lambda: {"": view}, log))
            run = StreamRun(settings.config, settings.plan, settings.checkpoint, log, view)
            run.should_stop = self._stop_requested.is_set
            if self._start_run(run, closing):
                return self._poll_run(run)
            return RunState.STOPPED

    def _start_run(self, run: StreamRun, closing: ExitStack) -> bool:
        """Start a run that has its checkpoint; return False when it is to stop before that."""
        from streamer.spark.checkpoint.jvm_lock import JvmLock
        from streamer.spark.session.process_spark import PROCESS_SPARK

        settings, log, view = self._settings, self.log, self._view
        try:
            spark = PROCESS_SPARK.acquire(_make_request(settings, log), log, view.start)
            closing.callback(PROCESS_SPARK.release)
            closing.callback(JvmLock(spark.base_session, run.checkpoint.directory).close)
            if not settings.plan.master.startswith("local"):
                from streamer.spark.cluster.worker_preflight import check_checkpoint

                check_checkpoint(spark.base_session, run.checkpoint.root)
        except BaseException:
            run.close()
            raise
        if self._stop_requested.is_set():
            run.close()
            return False
        open_run(run, spark)
        self._run = run
        start_run(run, spark)
        self._move_to(RunState.RUNNING)
        log("INFO", "Running", {"checkpoint": settings.checkpoint})
        self.has_started.set()
        return True

    def _poll_run(self, run: StreamRun) -> RunState:
        """Poll a run until it ends or is to stop; leave nothing of it behind."""
        try:
            state = self._poll_until_end(run)
        except BaseException:
            self._abandon_run(run)
            raise
        self._last_windows = run.list_windows()
        run.stop(self._stop_timeout, has_ended=state == RunState.ENDED)
        return state

    def _poll_until_end(self, run: StreamRun) -> RunState:
        clocks = ClockWatch(self.log)
        while True:
            if self._stop_requested.is_set():
                return RunState.STOPPED
            if self._drain_requested.is_set():
                self._move_to(RunState.DRAINING)
                run.drain()
                return RunState.DRAINED
            try:
                if run.poll():
                    return RunState.ENDED
            except StreamerError:
                # A query that is tried again gives up when it is to stop.
                if self._stop_requested.is_set():
                    return RunState.STOPPED
                raise
            clocks.check()
            self._wake.wait(_POLL_INTERVAL_S)
            self._wake.clear()

    def _abandon_run(self, run: StreamRun) -> None:
        """Leave a run that has failed; whatever else fails then does not hide the reason."""
        try:
            self._last_windows = run.list_windows()
            run.stop(0.0)
        except Exception as e:
            self.log("WARN", f"Something of the stream was left behind: {e}", {})


def _serves_http(view: StreamView) -> bool:
    """Whether the config wants an HTTP server; its default address is that of `streamer` alone."""
    http = view.config.http
    is_given = http.is_given("address") or http.is_given("enabled")
    return bool(http["enabled"] and (is_given or view.endpoints.has_expected_paths))


def _make_request(settings: RunSettings, log: LibraryLog) -> SparkRequest:
    from streamer.plan.required_packages import list_requirements
    from streamer.spark.jars.spark_settings import stream_spark_settings
    from streamer.spark.session.process_spark import SparkRequest

    config, plan = settings.config, settings.plan
    conf = stream_spark_settings(config.spark, os.environ, log, "", list_requirements(config))
    return SparkRequest(plan.master, conf, plan.level)
