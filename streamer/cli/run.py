"""`streamer -c config.yaml`: run one stream until its input ends or the program is told to stop."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from streamer import __version__
from streamer.cli.exporting import exported
from streamer.cli.hidden import hidden
from streamer.cli.options import Options
from streamer.cli.run_log import RunLog
from streamer.cli.serving import check_served, served
from streamer.cli.spark_start import RunStart, SparkStart, is_quick, start_run
from streamer.cli.status import Running, StartStatus, StatusLine, banner
from streamer.cli.stopper import Stopper, delay_stop
from streamer.config import Config
from streamer.durations import format_duration
from streamer.engine.clock_watch import ClockWatch
from streamer.engine.snapshot import Snapshot
from streamer.engine.start_progress import StartPhase, StartProgress
from streamer.errors import StreamerError
from streamer.logs.python_logging import take_python_logs
from streamer.plan import Plan, make_plan
from streamer.plan.place import default_checkpoint
from streamer.service.life import Life
from streamer.service.replacing import OnReset
from streamer.service.view import StreamView
from streamer.window.words import short

LINGER = 0.1
"""Seconds between two looks at the stream."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What one run has at hand."""

    options: Options
    life: Life
    log: RunLog
    status: StatusLine
    stopper: Stopper
    progress: StartProgress
    took: Callable[[Config], None]
    spark: SparkStart
    waits: Callable[[str], None]


def run_command(config: Config, options: Options) -> int:
    """Run a stream.

    Returns:
        The exit code: 0 for a clean end or stop, 1 when the stream could not go on.
    """
    log = RunLog(config, options.log_level)
    take_python_logs(log)
    for lint in config.lints:
        log("WARN", "Config lint error", {"lint": str(lint)})
    view = StreamView(config)
    with _status_line(view, log) as status:
        return _run_shown(config, options, log, view, status)


@contextmanager
def _status_line(view: StreamView, log: RunLog) -> Iterator[StatusLine]:
    """Give the line at the bottom of the terminal, where the start is shown from now on."""
    view.start.begin(StartPhase.PLAN)
    status = StatusLine(sys.stderr, time.time_ns)
    start = StartStatus(status, view.start, lambda: view.batch_progress(), log)
    log.attach(status)
    try:
        yield status
    finally:
        start.close()
        status.close()
        log.attach(None)


def _run_shown(
    config: Config, options: Options, log: RunLog, view: StreamView, status: StatusLine
) -> int:
    plan = make_plan(config, level=log.level)
    stopper = Stopper(lambda text: log("INFO", text, {}))
    checkpoint = checkpoint_of(config, options)
    with ExitStack() as closing:
        start = None
        if is_quick(plan, checkpoint):
            check_served(view)
            # Before all else: it boots while the rest is imported and opened.
            start = start_run(config, plan, checkpoint, log, view)
            closing.callback(start.spark.close)
        closing.enter_context(served(view, log))
        exports = closing.enter_context(ExitStack())
        exports.enter_context(exported(view.config.metrics, lambda: {"": view}, log))

        def took(changed: Config) -> None:
            # What exports metrics is made for one config.
            exports.close()
            exports.enter_context(exported(changed.metrics, lambda: {"": view}, log))
            log.take(changed)

        if start is None:
            start = start_run(config, plan, checkpoint, log, view)
            closing.callback(start.spark.close)
        run = _begin(start, options, log, stopper, view, status, took)
        try:
            return _run(run)
        except StreamerError as e:
            log("ERROR", str(e), {})
            return 1
        finally:
            view.ended()


def _begin(
    start: RunStart,
    options: Options,
    log: RunLog,
    stopper: Stopper,
    view: StreamView,
    status: StatusLine,
    took: Callable[[Config], None],
) -> _Run:
    """Say what is going to run."""
    life = start.life
    config, plan = life.config, life.plan
    directory = str(life.checkpoint)
    if life.renewed:
        text = "The earlier run read its input to the end; this one begins anew"
        log("INFO", text, {"checkpoint": directory})
    clean = hidden(config)
    shown = Running(
        version=__version__,
        config=config.path or "(no config: stdin to stdout)",
        way=_way(plan),
        master=clean(plan.master),
        shards=plan.shards,
        checkpoint=clean(directory),
        resumed=life.resumes,
    )
    with status.aside():
        banner(sys.stderr, shown)
    log("INFO", "Starting", {"config": shown.config, "checkpoint": shown.checkpoint})
    life.stopping, life.changed = stopper.asked.is_set, took
    return _Run(options, life, log, status, stopper, view.start, took, start.spark, view.waits)


def checkpoint_of(config: Config, options: Options) -> str:
    """Return the checkpoint directory: the command line's, the config's, or the config's own."""
    named = options.checkpoint or config.spark["checkpoint"]
    return str(named or default_checkpoint(config.path, os.environ))


def _way(plan: Plan) -> tuple[str, ...]:
    names = [plan.input.name]
    if plan.window is not None:
        names.append(f"{plan.buffer.name} {short(plan.window)}")
    elif plan.buffer.name != "none":
        names.append(plan.buffer.name)
    names += [processor.name for processor in plan.processors]
    return (*names, plan.output.name)


def _run(run: _Run) -> int:
    life, log, status, stopper = run.life, run.log, run.status, run.stopper
    asked = run.options.watch.on_reset if run.options.watch is not None else None
    on_reset = OnReset(asked) if asked else None
    life.checkpoint.skips_damaged = bool(run.options.skip_damaged)
    if life.lacks_shards:
        life.choose_shards(run.spark.session())
    overlay = status if sys.stdout.isatty() else None
    if run.options.wait_for_inputs:
        from streamer.cli.patient_start import open_patiently

        begin = partial(life.open, overlay, on_reset)
        if not open_patiently(begin, stopper.asked, log, run.waits):
            return 0
    else:
        life.open(overlay, on_reset)
    session = run.spark.session()
    if not life.plan.master.startswith("local"):
        from streamer.spark.preflight import check_checkpoint

        check_checkpoint(session, life.checkpoint.root)
    stopper.install()
    life.start(session)
    log("INFO", "Running", {"seconds": round(run.progress.seconds, 1)})
    meter = _Meter()
    clocks = ClockWatch(log)
    warmed = False
    with _watched(run) as look:
        while not stopper.asked.is_set():
            try:
                if life.poll():
                    break
                look()
                clocks.look()
            except BrokenPipeError:
                log("ERROR", "The standard output was closed by its reader; stopping", {})
                _leave(run)
                return 1
            # Until the first micro-batch is delivered, the start is shown.
            if run.progress.is_over:
                if not warmed:
                    run.spark.make_archive()
                    warmed = True
                figures = meter.figures(life.snapshot())
                status.update(*figures, "running", life.batch_progress())
            stopper.asked.wait(LINGER)
    stopped = stopper.asked.is_set()
    life.end_start()
    status.update(*meter.figures(life.snapshot()), "stopping")
    delay_stop(life.config.shutdown_delay, stopper, log)
    finished = _leave(run)
    _farewell(life.snapshot(), stopped, str(life.checkpoint), log)
    if not stopped and finished:
        life.finish()
        if not warmed:
            run.spark.make_archive()
    if not finished:
        # A write that is stuck would keep Python from ending; what is not written is replayed.
        status.close()
        sys.stderr.flush()
        os._exit(0)
    life.checkpoint.close()
    return 0


@contextmanager
def _watched(run: _Run) -> Iterator[Callable[[], None]]:
    """Watch the config's files if that was asked for; give what takes their changes."""
    if run.options.watch is None or run.options.config is None:
        yield lambda: None
        return
    # Imported here: few runs watch anything.
    from streamer.cli.reloading import Reloads

    reloads = Reloads(run.life, run.options, run.log, lambda: run.log.level, run.took)
    try:
        yield reloads.look
    finally:
        reloads.close()


def _leave(run: _Run) -> bool:
    finished = run.life.leave()
    if not finished:
        text = "The micro-batch in hand did not finish within shutdown_timeout; it will be replayed"
        if run.life.stream.is_undelivered:
            text = "The output has not taken the micro-batch in hand; it will be replayed"
        run.log(
            "WARN", text, {"shutdown_timeout": format_duration(run.life.config.shutdown_timeout)}
        )
    return finished


def _farewell(last: Snapshot, stopped: bool, checkpoint: str, log: Callable[..., None]) -> None:
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


class _Meter:
    """Messages a second, from one figure to the next."""

    def __init__(self) -> None:
        self._messages = 0
        self._at = time.monotonic()
        self._rate = 0.0

    def figures(self, snapshot: Snapshot) -> tuple[int, float, int, int | None, int]:
        """Return what the status line shows."""
        now = time.monotonic()
        if snapshot.messages != self._messages:
            self._rate = (snapshot.messages - self._messages) / max(now - self._at, 1e-3)
            self._messages, self._at = snapshot.messages, now
        elif now - self._at > 5:
            self._rate = 0.0
        dropped = sum(snapshot.dropped.values())
        close = snapshot.next_close
        return snapshot.messages, max(self._rate, 0.0), snapshot.open_windows, close, dropped
