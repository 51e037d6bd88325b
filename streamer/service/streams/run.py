"""One run of a stream on the service's Spark, as a supervisor handles it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from streamer.config import Config
from streamer.durations import SECOND
from streamer.engine.delivery import LogLine
from streamer.engine.tapping import Tap
from streamer.plan import Plan, make_plan
from streamer.service.life import Life
from streamer.service.replacing import OnReset
from streamer.service.streams.checkpoints import Checkpoints
from streamer.service.streams.supervisor import Change
from streamer.service.streams.windows import open_windows
from streamer.service.view import StreamView


class Host(Protocol):
    """The Spark that streams run on."""

    @property
    def first(self) -> Any:
        """A session that is no stream's."""

    def session(self, share: int) -> Any:
        """Return a session for a run of a stream."""

    def take_share(self) -> int:
        """Return the number of a share of the cores."""

    def give_share(self, share: int) -> None:
        """Give a share back."""

    def alive(self) -> bool:
        """Whether it is still there."""


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
        host: Host,
        log: LogLine,
        level: str,
        view: StreamView,
        back: Callable[[Config], None],
        on_reset: OnReset | None = None,
        skips_damaged: bool = False,
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
            back: hears of the config that runs after one that has failed on probation.
            on_reset: what becomes of open windows that were left by another config which it cannot
                go on with; None to refuse.
            skips_damaged: whether to go on behind what is damaged of what inputs have received.
        """
        self._id = stream_id
        self._config = config
        self._checkpoints = checkpoints
        self._host = host
        self._log = log
        self._level = level
        self._view = view
        self._back = back
        self._on_reset = on_reset
        self._skips_damaged = skips_damaged
        self._life: Life | None = None
        self._share = 0
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start it; see `Run.start`."""
        plan = plan_of(self._config, self._id, self._level)
        held = self._checkpoints.held(self._id, self._log)
        life = Life(self._config, plan, held, self._log, self._view)
        life.stopping = self._stopping.is_set
        life.changed = self._back
        life.checkpoint.skips_damaged = self._skips_damaged
        try:
            if life.lacks_shards:
                life.choose_shards(self._host.first)
            life.open(on_reset=self._on_reset)
        except BaseException:
            life.close()
            raise
        self._share = self._host.take_share()
        self._life = life
        try:
            life.start(self._host.session(self._share))
            self._checkpoints.settle(self._id)
        except BaseException:
            self.stop(0.0)
            raise

    def poll(self) -> bool:
        """Look after it; see `Run.poll`."""
        assert self._life is not None
        return self._life.poll()

    def batch(self) -> int:
        """Return the number of the newest micro-batch."""
        return -1 if self._life is None else self._life.snapshot().batch

    def pace(self, seconds: float, patience: float) -> None:
        """Say how often it looks for data, and takes it; see `Run.pace`."""
        assert self._life is not None
        self._life.stream.pace(seconds, patience)

    def interrupt(self) -> None:
        """Let it give up waiting."""
        self._stopping.set()
        life = self._life
        if life is not None and life.is_opened:
            life.stream.interrupt()

    def replace(self, change: Change) -> None:
        """Let another revision take its place; see `Run.replace`."""
        assert self._life is not None
        plan = plan_of(change.config, self._id, self._level)
        self._life.replace(
            *(change.config, plan, change.judgement, change.on_reset, change.revision),
            probation=change.probation,
        )
        self._config = self._life.config

    def stop(self, timeout: float | None = None, over: bool = False) -> None:
        """Stop it; see `Run.stop`."""
        life, self._life = self._life, None
        if life is None:
            return
        try:
            if life.is_opened:
                self._leave(life, timeout, over)
        finally:
            self._host.give_share(self._share)
            life.close()

    def _leave(self, life: Life, timeout: float | None, over: bool) -> None:
        finished = life.leave(None if timeout is None else round(timeout * SECOND))
        if finished and over:
            life.finish()
        if not finished:
            text = "The micro-batch in hand did not finish in time; it will be replayed"
            if life.stream.is_undelivered:
                text = "The output has not taken the micro-batch in hand; it will be replayed"
            self._log("WARN", text, {})
            life.stream.abandon()

    def windows(self) -> Mapping[str, Any]:
        """Return its open windows."""
        life = self._life
        if life is None or not life.is_opened:
            return open_windows(None, ())
        return open_windows(life.plan.window, life.stream.statuses(), life.stream.recent)

    def tap(self) -> Tap | None:
        """Return its samples of messages."""
        life = self._life
        return life.stream.tap if life is not None and life.is_opened else None
