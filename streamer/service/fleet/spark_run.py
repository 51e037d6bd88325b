"""One run of a stream on the service's Spark, as a supervisor handles it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from streamer.config import Config
from streamer.core.durations import SECOND
from streamer.core.log_format import LogLine
from streamer.engine.report.message_samples import MessageSamples
from streamer.plan import Plan, make_plan
from streamer.service.fleet.checkpoints import Checkpoints
from streamer.service.fleet.supervisor import Change
from streamer.service.fleet.window_listing import list_open_windows
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.run.revision_switch import OnReset
from streamer.service.run.stream_run import StreamRun


class SparkProvider(Protocol):
    """The Spark that streams run on."""

    @property
    def base_session(self) -> Any:
        """A session that is no stream's."""

    def new_session(self, share: int) -> Any:
        """Return a session for a run of a stream."""

    def acquire_share(self) -> int:
        """Return the number of a share of the cores."""

    def release_share(self, share: int) -> None:
        """Give a share back."""

    def is_alive(self) -> bool:
        """Whether Spark is still there."""


def plan_of(config: Config, stream_id: str, level: str) -> Plan:
    """Return the plan of a stream.

    Raises:
        StreamerError: the config asks for something that cannot be run.
    """
    return replace(make_plan(config, level=level), name=stream_id)


class SparkRun:
    """A run. It has a plan of its own: workers keep by it what outlives their tasks."""

    def __init__(
        self,
        stream_id: str,
        config: Config,
        checkpoints: Checkpoints,
        host: SparkProvider,
        log: LogLine,
        level: str,
        view: StreamView,
        on_rollback: Callable[[Config], None],
        on_reset: OnReset | None = None,
        should_skip_damaged: bool = False,
    ) -> None:
        """Take all that a start needs.

        Args:
            stream_id: the stream.
            config: its config.
            checkpoints: has its checkpoint.
            host: the Spark.
            log: takes the stream's lines.
            level: the log level.
            view: what others may ask about the run.
            on_rollback: hears of the config that runs after one that has failed on probation.
            on_reset: what becomes of open windows that were left by another config which it cannot
                go on with; None to refuse.
            should_skip_damaged: whether to go on behind what is damaged of what inputs have
                received.
        """
        self._id = stream_id
        self._config = config
        self._checkpoints = checkpoints
        self._host = host
        self._log = log
        self._level = level
        self._view = view
        self._on_rollback = on_rollback
        self._on_reset = on_reset
        self._should_skip_damaged = should_skip_damaged
        self._stream_run: StreamRun | None = None
        self._share = 0
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start the stream; as `Run.start`."""
        plan = plan_of(self._config, self._id, self._level)
        checkpoint_location = self._checkpoints.acquire(self._id, self._log)
        stream_run = StreamRun(self._config, plan, checkpoint_location, self._log, self._view)
        stream_run.should_stop = self._stopping.is_set
        stream_run.on_rollback = self._on_rollback
        stream_run.checkpoint.should_skip_damaged = self._should_skip_damaged
        try:
            if stream_run.needs_shards:
                stream_run.choose_shards(self._host.base_session)
            stream_run.open(on_reset=self._on_reset)
        except BaseException:
            stream_run.close()
            raise
        self._share = self._host.acquire_share()
        self._stream_run = stream_run
        try:
            stream_run.start(self._host.new_session(self._share))
            self._checkpoints.mark_started(self._id)
        except BaseException:
            self.stop(0.0)
            raise

    def poll(self) -> bool:
        """Look after it; see `Run.poll`."""
        assert self._stream_run is not None
        return self._stream_run.poll()

    def newest_batch(self) -> int:
        """Return the number of the newest micro-batch."""
        return -1 if self._stream_run is None else self._stream_run.snapshot().batch

    def set_poll_rates(self, rest_s: float, min_wait_s: float) -> None:
        """Say how often it looks for data, and takes it; see `Run.pace`."""
        assert self._stream_run is not None
        self._stream_run.stream.set_poll_settings(rest_s, min_wait_s)

    def interrupt(self) -> None:
        """Abandon the wait."""
        self._stopping.set()
        stream_run = self._stream_run
        if stream_run is not None and stream_run.is_opened:
            stream_run.stream.interrupt()

    def replace(self, change: Change) -> None:
        """Let another revision take its place; see `Run.replace`."""
        assert self._stream_run is not None
        plan = plan_of(change.config, self._id, self._level)
        self._stream_run.replace(
            *(change.config, plan, change.judgement, change.on_reset, change.revision),
            probation=change.probation,
        )
        self._config = self._stream_run.config

    def stop(self, timeout: float | None = None, has_ended: bool = False) -> None:
        """Stop the stream; as `Run.stop`."""
        stream_run, self._stream_run = self._stream_run, None
        if stream_run is None:
            return
        try:
            if stream_run.is_opened:
                self._stop_gracefully(stream_run, timeout, has_ended)
        finally:
            self._host.release_share(self._share)
            stream_run.close()

    def _stop_gracefully(
        self, stream_run: StreamRun, timeout: float | None, has_ended: bool
    ) -> None:
        finished = stream_run.stop_gracefully(None if timeout is None else round(timeout * SECOND))
        if finished and has_ended:
            stream_run.finish()
        if not finished:
            text = "The micro-batch in hand did not finish in time; it will be replayed"
            if stream_run.stream.is_undelivered:
                text = "The output has not taken the micro-batch in hand; it will be replayed"
            self._log("WARN", text, {})
            stream_run.stream.abandon()

    def list_windows(self) -> Mapping[str, Any]:
        """Return its open windows."""
        stream_run = self._stream_run
        if stream_run is None or not stream_run.is_opened:
            return list_open_windows(None, ())
        return list_open_windows(
            stream_run.plan.window, stream_run.stream.statuses(), stream_run.stream.recent
        )

    def tap(self) -> MessageSamples | None:
        """Return its samples of messages."""
        stream_run = self._stream_run
        return stream_run.stream.tap if stream_run is not None and stream_run.is_opened else None
