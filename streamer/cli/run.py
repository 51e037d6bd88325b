"""`streamer -c config.yaml`: run one stream until its input ends or the program is told to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from streamer import __version__
from streamer.cli.options import Options
from streamer.cli.status import Running, StatusLine, banner
from streamer.config import Config
from streamer.durations import SECOND, format_duration
from streamer.engine.snapshot import Snapshot
from streamer.errors import StreamerError
from streamer.logs import LogConfig, Logger
from streamer.plan import Plan, make_plan
from streamer.plan.place import default_checkpoint
from streamer.redaction import Redaction

LINGER = 0.1
"""Seconds between two looks at the stream."""


class Stopper:
    """SIGTERM and SIGINT: the first asks for a stop between micro-batches, the second insists."""

    def __init__(self, log: Callable[[str], None]) -> None:
        """Take over both signals."""
        self._log = log
        self.asked = threading.Event()
        self.install()

    def install(self) -> None:
        """Take over both signals; starting Spark takes SIGINT away, so this is done again then."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: Any) -> None:
        if self.asked.is_set():
            # Nothing is lost: offsets and windows are in the checkpoint, the rest is replayed.
            os._exit(1)
        self.asked.set()
        name = signal.Signals(number).name
        self._log(f"Received {name}: finishing the micro-batch in hand; again to stop at once")


def run_command(config: Config, options: Options) -> int:
    """Run a stream.

    Returns:
        The exit code: 0 for a clean end or stop, 1 when the stream could not go on.
    """
    from streamer.spark.checkpoint import Checkpoint

    log_config = LogConfig.from_parsed(config.logger)
    if options.log_level is not None:
        log_config = replace(log_config, level=options.log_level)
    logger = Logger(log_config, secrets=config.secrets)

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        logger.emit(level, text, fields, time.time_ns())

    plan = make_plan(config, level=log_config.level)
    stopper = Stopper(lambda text: log("INFO", text, {}))
    checkpoint = Checkpoint(checkpoint_of(config, options))
    if checkpoint.begin():
        text = "The earlier run read its input to the end; this one begins anew"
        log("INFO", text, {"checkpoint": str(checkpoint.directory)})
    clean = Redaction(config.secrets).text
    shown = Running(
        version=__version__,
        config=config.path or "(no config: stdin to stdout)",
        way=_way(plan),
        master=clean(plan.master),
        shards=plan.shards,
        checkpoint=clean(str(checkpoint.directory)),
        resumed=checkpoint.resumes,
    )
    banner(sys.stderr, shown)
    log("INFO", "Starting", {"config": shown.config, "checkpoint": shown.checkpoint})
    if config.metrics.name != "none":
        text = f"metrics.{config.metrics.name} has no effect yet: this version serves no metrics"
        log("WARN", text, {})
    status = StatusLine(sys.stderr, time.time_ns)
    logger.attach(status)
    try:
        return _run(config, plan, checkpoint, log, log_config.level, status, stopper)
    except StreamerError as e:
        log("ERROR", str(e), {})
        return 1
    finally:
        status.close()
        logger.attach(None)


def checkpoint_of(config: Config, options: Options) -> str:
    """Return the checkpoint directory: the command line's, the config's, or the config's own."""
    named = options.checkpoint or config.spark["checkpoint"]
    return str(named or default_checkpoint(config.path, os.environ))


def _way(plan: Plan) -> tuple[str, ...]:
    names = [plan.input.name]
    if plan.window is not None:
        names.append(f"{plan.buffer.name} {format_duration(plan.window.size)}")
    elif plan.buffer.name != "none":
        names.append(plan.buffer.name)
    names += [processor.name for processor in plan.processors]
    return (*names, plan.output.name)


def _run(
    config: Config,
    plan: Plan,
    checkpoint: Any,
    log: Callable[[str, str, Mapping[str, Any]], None],
    level: str,
    status: StatusLine,
    stopper: Stopper,
) -> int:
    from streamer.spark.session import start_session
    from streamer.spark.stream import Stream

    status.update(0, 0.0, 0, None, 0, "starting Spark")
    began = time.monotonic()
    overlay = status if sys.stdout.isatty() else None
    stream = Stream(plan, checkpoint, log, overlay=overlay)
    session = start_session(
        f"streamer {plan.name}",
        plan.master,
        config.spark["conf"],
        log,
        level,
        keep_open=(checkpoint.lock,),
    )
    stopper.install()
    stream.start(session)
    log("INFO", "Running", {"seconds": round(time.monotonic() - began, 1)})
    meter = _Meter()
    while not stopper.asked.is_set():
        try:
            if stream.poll():
                break
        except BrokenPipeError:
            log("ERROR", "The standard output was closed by its reader; stopping", {})
            _leave(stream, config, log)
            return 1
        snapshot = stream.snapshot()
        status.update(*meter.figures(snapshot), "running" if snapshot.batch >= 0 else "starting")
        stopper.asked.wait(LINGER)
    stopped = stopper.asked.is_set()
    status.update(*meter.figures(stream.snapshot()), "stopping")
    finished = _leave(stream, config, log)
    last = stream.snapshot()
    _farewell(last, stopped, checkpoint, log)
    if not stopped and finished and not last.held:
        stream.finish()
    if not finished:
        # A write that is stuck would keep Python from ending; what is not written is replayed.
        status.close()
        sys.stderr.flush()
        os._exit(0)
    return 0


def _leave(stream: Any, config: Config, log: Callable[..., None]) -> bool:
    finished: bool = stream.stop(config.shutdown_timeout / SECOND)
    if not finished:
        text = "The micro-batch in hand did not finish within shutdown_timeout; it will be replayed"
        log("WARN", text, {"shutdown_timeout": format_duration(config.shutdown_timeout)})
    return finished


def _farewell(last: Snapshot, stopped: bool, checkpoint: Any, log: Callable[..., None]) -> None:
    fields: dict[str, Any] = {"messages": last.messages}
    if last.dropped:
        fields["dropped"] = sum(last.dropped.values())
    if last.held:
        fields["held"] = last.held
        fields["open_windows"] = last.open_windows
        fields["checkpoint"] = str(checkpoint.directory)
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
