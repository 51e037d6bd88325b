"""`streamer -c config.yaml`: run one stream until its input ends or a signal stops the program.

The checkpoint's lock, Spark's JVM and the Python that workers fork from take time for themselves,
so they begin before anything else and are waited for last.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from streamer import __version__
from streamer.cli.log_output.python_logging import take_python_logs
from streamer.cli.options import Options
from streamer.cli.redact_output import build_redactor
from streamer.cli.run_log import RunLog
from streamer.cli.signal_handler import SignalHandler, delay_stop
from streamer.cli.status_line import BannerInfo, StartStatus, StatusLine, print_banner
from streamer.components.plugins import report_name_problems
from streamer.config import Config
from streamer.core.durations import format_duration
from streamer.core.errors import StreamerError
from streamer.engine.driver.clock_watch import ClockWatch
from streamer.engine.report.batch_progress import ReadingLog
from streamer.engine.report.start_progress import StartPhase, StartProgress
from streamer.engine.report.stream_metrics import Snapshot
from streamer.plan import Plan, checkpoint_dir, make_plan
from streamer.plan.checkpoint_dir import is_remote
from streamer.service.api.stream_server import check_server_address, serve_stream
from streamer.service.monitoring.metrics_export import export_metrics
from streamer.service.monitoring.stream_condition import describe_condition, read_condition
from streamer.service.monitoring.stream_figures import MarkerKind
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.run.revision_switch import OnReset
from streamer.service.run.stream_run import StreamRun

POLL_INTERVAL_S = 0.1
"""Seconds between two looks at the stream."""


@dataclass(frozen=True, slots=True)
class _RunContext:
    """The objects of one run."""

    options: Options
    life: StreamRun
    log: RunLog
    status: StatusLine
    stopper: SignalHandler
    progress: StartProgress
    on_config: Callable[[Config], None]
    spark: SparkStart
    on_wait: Callable[[str], None]
    describe_state: Callable[[], str]


def run_command(config: Config, options: Options) -> int:
    """Run a stream.

    Returns:
        The exit code: 0 for a clean end or stop, 1 when the stream could not go on.
    """
    log = RunLog(config, options.log_level)
    take_python_logs(log)
    for lint in config.lints:
        log("WARN", "Config lint error", {"lint": str(lint)})
    report_name_problems(lambda text: log("WARN", text, {}))
    view = StreamView(config)
    redact = build_redactor(config)
    log.on_line = lambda level, text, fields: view.on_line(level, text, fields)
    log.on_error = lambda text: view.figures.mark(MarkerKind.ERROR, redact(text))
    with _open_status_line(view, log) as status:
        return _run_with_status(config, options, log, view, status)


@contextmanager
def _open_status_line(view: StreamView, log: RunLog) -> Iterator[StatusLine]:
    """Give the line at the bottom of the terminal, where the start is shown from now on."""
    view.start.begin(StartPhase.PLAN)
    status = StatusLine(sys.stderr, time.time_ns)
    start = StartStatus(
        status, view.start, lambda: view.batch_progress(), log, partial(_describe_trouble, view)
    )
    log.attach(status)
    try:
        yield status
    finally:
        start.close()
        status.close()
        log.attach(None)


def _describe_trouble(view: StreamView) -> str:
    """Return what a first micro-batch that fails, or waits, is in; empty when it gets on."""
    now = time.time()
    condition = read_condition(view, now)
    return describe_condition(condition, now) if condition.is_failing else ""


def _run_with_status(
    config: Config, options: Options, log: RunLog, view: StreamView, status: StatusLine
) -> int:
    plan = make_plan(config, level=log.level)
    stopper = SignalHandler(lambda text: log("INFO", text, {}))
    checkpoint = choose_checkpoint(config, options)
    with ExitStack() as closing:
        start = None
        if _is_local_run(plan, checkpoint):
            check_server_address(view)
            # Before all else: it boots while the rest is imported and opened.
            start = start_run(config, plan, checkpoint, log, view)
            closing.callback(start.spark.close)
        closing.enter_context(serve_stream(view, log))
        exports = closing.enter_context(ExitStack())
        exports.enter_context(export_metrics(view.config.metrics, lambda: {"": view}, log))

        def use_config(changed: Config) -> None:
            # What exports metrics is made for one config.
            exports.close()
            exports.enter_context(export_metrics(changed.metrics, lambda: {"": view}, log))
            log.use_config(changed)

        if start is None:
            start = start_run(config, plan, checkpoint, log, view)
            closing.callback(start.spark.close)
        run = _announce_run(start, options, log, stopper, view, status, use_config)
        try:
            return _run_stream(run)
        except StreamerError as e:
            log("ERROR", str(e), {})
            return 1
        finally:
            view.set_ended()


def _announce_run(
    start: RunStart,
    options: Options,
    log: RunLog,
    stopper: SignalHandler,
    view: StreamView,
    status: StatusLine,
    on_config: Callable[[Config], None],
) -> _RunContext:
    """Print what is going to run."""
    life = start.life
    config, plan = life.config, life.plan
    directory = str(life.checkpoint)
    if life.is_renewed:
        text = "The earlier run read its input to the end; this one begins anew"
        log("INFO", text, {"checkpoint": directory})
    redact = build_redactor(config)
    info = BannerInfo(
        version=__version__,
        config=config.path or "(no config: stdin to stdout)",
        components=_list_components(plan),
        master=redact(plan.master),
        shards=plan.shards,
        checkpoint=redact(directory),
        resumed=life.is_resumable,
    )
    with status.hide():
        print_banner(sys.stderr, info)
    log("INFO", "Starting", {"config": info.config, "checkpoint": info.checkpoint})
    life.should_stop, life.on_rollback = stopper.stop_requested.is_set, on_config
    return _RunContext(
        *(options, life, log, status, stopper, view.start, on_config, start.spark),
        *(view.set_waiting, _ConditionText(view)),
    )


def choose_checkpoint(config: Config, options: Options) -> str:
    """Return the checkpoint directory: the command line's, the config's, or the config's own."""
    return checkpoint_dir.choose_checkpoint(config, options.checkpoint, os.environ)


def _list_components(plan: Plan) -> tuple[str, ...]:
    names = [plan.input.name]
    for one in plan.buffers:
        window = one.windows.window
        names.append(f"{one.label} {window.headline}" if window is not None else one.label)
    if plan.buffers:
        return (*names, *(output.name for output in plan.outputs))
    if plan.window is not None:
        names.append(f"{plan.buffer.name} {plan.window.headline}")
    elif plan.buffer.name != "none":
        names.append(plan.buffer.name)
    names += [processor.name for processor in plan.processors]
    return (*names, plan.output.name)


def _run_stream(run: _RunContext) -> int:
    life, log, status, stopper = run.life, run.log, run.status, run.stopper
    if not _open_stream(run):
        return 0
    session = run.spark.wait_for_session()
    if not life.plan.master.startswith("local"):
        from streamer.spark.cluster.worker_preflight import check_checkpoint

        check_checkpoint(session, life.checkpoint.root)
    stopper.install()
    life.start(session)
    log("INFO", "Running", {"seconds": round(run.progress.seconds, 1)})
    try:
        _poll_until_end(run)
    except BrokenPipeError:
        log("ERROR", "The standard output was closed by its reader; stopping", {})
        _drain_and_stop(run)
        return 1
    stopped = stopper.stop_requested.is_set()
    life.finish_start()
    status.update(*_status_figures(life), "stopping")
    delay_stop(life.config.shutdown_delay, stopper, log)
    finished = _drain_and_stop(run)
    life.finish_start()  # again: the first micro-batch may have been delivered since
    _log_end(life.snapshot(), stopped, str(life.checkpoint), log)
    if not stopped and finished:
        life.finish()
        run.spark.make_archive()
    if not finished:
        # A write that is stuck would keep Python from ending; what is not written is replayed.
        status.close()
        sys.stderr.flush()
        os._exit(0)
    life.checkpoint.close()
    return 0


def _open_stream(run: _RunContext) -> bool:
    """Open inputs and outputs; return False when the program is to stop before they are open."""
    life, options, stopper = run.life, run.options, run.stopper
    on_reset_name = options.watch.on_reset if options.watch is not None else None
    on_reset = OnReset(on_reset_name) if on_reset_name else None
    life.checkpoint.should_skip_damaged = bool(options.skip_damaged)
    if life.needs_shards:
        life.choose_shards(run.spark.wait_for_session())
    overlay = run.status if sys.stdout.isatty() else None
    if not options.wait_for_inputs:
        life.open(overlay, on_reset)
        return True
    from streamer.cli.start_retry import open_with_retries

    begin = partial(life.open, overlay, on_reset)
    return open_with_retries(begin, stopper.stop_requested, run.log, run.on_wait)


def _poll_until_end(run: _RunContext) -> None:
    """Poll the stream until it ends, or is to stop.

    Raises:
        BrokenPipeError: nobody reads the standard output any more.
    """
    life, stopper = run.life, run.stopper
    clocks, reading = ClockWatch(run.log), ReadingLog(run.log)
    with _watch_files(run) as poll_changes:
        while not stopper.stop_requested.is_set():
            if life.poll():
                return
            poll_changes()
            clocks.check()
            # Until the first micro-batch is delivered, the start is shown.
            if run.progress.is_finished:
                run.spark.make_archive()
                figures = _status_figures(life)
                state = run.describe_state() if run.status.is_active else ""
                batch = life.batch_progress()
                run.status.update(*figures, state, batch)
                if batch is not None and not run.status.is_active:
                    reading.log(batch)
            stopper.stop_requested.wait(POLL_INTERVAL_S)


@contextmanager
def _watch_files(run: _RunContext) -> Iterator[Callable[[], None]]:
    """Watch the config's files if that was asked for; give what takes their changes."""
    if run.options.watch is None or run.options.config is None:
        yield lambda: None
        return
    # Imported here: few runs watch anything.
    from streamer.cli.config_reload import ConfigReloader

    reloads = ConfigReloader(run.life, run.options, run.log, lambda: run.log.level, run.on_config)
    try:
        yield reloads.poll
    finally:
        reloads.close()


def _drain_and_stop(run: _RunContext) -> bool:
    finished = run.life.stop_gracefully()
    if not finished:
        text = "The micro-batch in hand did not finish within shutdown_timeout; it will be replayed"
        if run.life.stream.run.is_undelivered:
            text = "The output has not taken the micro-batch in hand; it will be replayed"
        run.log(
            "WARN", text, {"shutdown_timeout": format_duration(run.life.config.shutdown_timeout)}
        )
    return finished


def _log_end(last: Snapshot, stopped: bool, checkpoint: str, log: Callable[..., None]) -> None:
    fields: dict[str, Any] = {"messages": last.messages}
    if last.dropped:
        fields["dropped"] = sum(last.dropped.values())
    if last.held:
        fields["held"] = last.held
        fields["open_windows"] = last.open_windows
        fields["checkpoint"] = checkpoint
        log("INFO", "Stopped; open windows stay in the checkpoint for the next start", fields)
    else:
        log("INFO", "Stopped" if stopped else "The input has ended and all is written", fields)


class _ConditionText:
    """The condition of the stream in words, read once a second."""

    def __init__(self, view: StreamView) -> None:
        self._view = view
        self._read_at = -1.0
        self._text = ""

    def __call__(self) -> str:
        steady = time.monotonic()
        if steady - self._read_at >= 1.0:
            now = time.time()
            self._text = describe_condition(read_condition(self._view, now), now)
            self._read_at = steady
        return self._text


def _status_figures(life: StreamRun) -> tuple[int, float | None, int, int | None, int]:
    """Return what the status line shows."""
    snapshot, rate = life.snapshot(), life.rate
    dropped = sum(snapshot.dropped.values())
    return snapshot.messages, rate, snapshot.open_windows, snapshot.next_close, dropped


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
        from streamer.plan.required_packages import list_requirements
        from streamer.spark.fork_server.fork_server import ForkServer, publish_fork_socket
        from streamer.spark.jars.spark_settings import stream_spark_settings
        from streamer.spark.session.session_start import SessionStart, SparkApplication

        conf = {
            **more,
            **stream_spark_settings(
                config.spark, os.environ, log, checkpoint, list_requirements(config)
            ),
        }
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


def _is_local_run(plan: Plan, checkpoint: str) -> bool:
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
