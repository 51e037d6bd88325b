"""Looks after one stream: starts it, starts it again when it fails, stops it when it is told to.

Everything that is done with a stream is done in its own thread, one thing after the other. So no
stream waits for another one, and what fails in one is seen by nobody else.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from streamer.config import Config
from streamer.core.errors import StreamerError, is_transient
from streamer.core.log_format import LogLine
from streamer.engine.driver.failure_diagnosis import root_cause_line
from streamer.engine.report.message_samples import MessageSamples
from streamer.plan.change_impact import ChangeImpact
from streamer.service.run.revision_switch import OnReset

Log = Callable[[str, str, Mapping[str, Any]], None]


class LifecycleState(StrEnum):
    """States of a stream."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    WAITING = "waiting"
    PAUSED = "paused"
    ENDED = "ended"
    FAILED = "failed"
    STOPPED = "stopped"


_MAX_START_S: Final = 20.0
"""Seconds after which a stream that has delivered nothing is not taken to be starting."""

_MAX_WAIT_PAUSE_S: Final = 30.0
"""Between two tries of a stream that waits for a server or the machine: each takes seconds."""

_BUSY_S: Final = 30.0
"""Seconds for which a stream that has delivered something is taken to be busy."""

ACTIVE = frozenset(
    {
        LifecycleState.STARTING,
        LifecycleState.RUNNING,
        LifecycleState.RESTARTING,
        LifecycleState.WAITING,
    }
)
"""The states in which messages flow, or are about to."""


@dataclass(frozen=True, slots=True)
class Change:
    """Another revision for a run.

    Attributes:
        config: what is to run.
        judgement: of the change from what runs.
        on_reset: what becomes of open windows that must begin anew; None when they need not.
        revision: what it is called.
        probation: seconds in which it may fail, so that what ran before comes back; None for none.
    """

    config: Config
    judgement: ChangeImpact
    on_reset: OnReset | None = None
    revision: str = ""
    probation: float | None = None


class RunHandle(Protocol):
    """One run of a stream, from its start to its end."""

    def start(self) -> None:
        """Start the run; when that raises, all that was begun is undone.

        Raises:
            StreamerError: it cannot be started.
        """

    def poll(self) -> bool:
        """Look after it; return whether it is over: its input has ended, and all is done.

        Raises:
            StreamerError: it failed too often at the same place.
        """

    def newest_batch(self) -> int:
        """Return the number of the newest micro-batch; it grows when the stream gets on."""

    def list_windows(self) -> Mapping[str, Any]:
        """Return its open windows, see `open_windows`."""

    def tap(self) -> MessageSamples | None:
        """Return its samples of messages; None while it is not open."""

    def set_poll_rates(self, rest_s: float, min_wait_s: float) -> None:
        """Say how often it looks for data, and takes it.

        Args:
            rest_s: how long its source may rest between two looks that find nothing.
            min_wait_s: how long data waits at least, s.
        """

    def interrupt(self) -> None:
        """Abandon the wait for what fails, from another thread; `stop` comes next."""

    def replace(self, change: Change) -> None:
        """Let another revision take its place.

        Raises:
            StreamerError: it does not run; what ran before does.
        """

    def stop(self, timeout: float | None = None, has_ended: bool = False) -> None:
        """Stop the run, and free its resources.

        Args:
            timeout: seconds for the micro-batch in hand; the config's `shutdown_timeout` when None.
            has_ended: whether its input has ended, so that the next start begins anew.
        """


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Policy of restarts of a stream that fails.

    Attributes:
        max_restarts: restarts without getting further, after which it stays as it is.
        first_pause_s: the pause before the first one, s; each is twice as long as the one before.
        max_pause_s: the longest pause, s.
    """

    max_restarts: int = 5
    first_pause_s: float = 1.0
    max_pause_s: float = 60.0

    def pause_after(self, failures: int) -> float:
        """Return the pause after so many failures in a row, s."""
        return float(min(self.first_pause_s * 2.0 ** (failures - 1), self.max_pause_s))


class StartLimiter:
    """Lets few streams at a time through their start, to their first micro-batch.

    That takes new processes and much of the cores; where all begin at once, none gets anywhere.
    """

    def __init__(self, places: int, timeout: float = 60.0) -> None:
        """Take how many pass at a time, and after how many seconds one goes on all the same."""
        self._places = threading.Semaphore(places)
        self._timeout = timeout

    def acquire(self) -> bool:
        """Wait for a place; return whether there was one in time."""
        return self._places.acquire(timeout=self._timeout)

    def release(self) -> None:
        """Give the place back."""
        self._places.release()


class Supervisor:
    """The one who looks after a stream. Its methods may be called from several threads.

    Attributes:
        state: what the stream does.
        reason: why it failed, is being restarted, or what it waits for and since when; empty
            otherwise.
        restarts: how often it was started again.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], RunHandle],
        log: LogLine,
        policy: RestartPolicy,
        poll_interval: Callable[[], float],
        start_limiter: StartLimiter,
        on_state: Callable[[LifecycleState], None] = lambda state: None,
        now: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin with a stream that is stopped.

        Args:
            name: of the thread.
            make: makes a run.
            log: takes log lines.
            policy: how often it is started again.
            poll_interval: gives the seconds between two looks at it.
            start_limiter: what it passes when it starts.
            on_state: hears of every state that the stream comes to by itself.
            now: a clock that never runs backwards, s.
            wall_clock: the time of day, seconds since 1970.
        """
        self._wall_clock = wall_clock
        self._wait_count = 0
        self._waiting_since = 0.0
        self._make = make
        self._log = log
        self._policy = policy
        self._poll_interval = poll_interval
        self._start_limiter = start_limiter
        self._start_slot_since: float | None = None
        self._on_state = on_state
        self._now = now
        self._run: RunHandle | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._failures = 0
        self._failed_batch = -1
        self._restart_at = 0.0
        self._poll_rates = 0.0, 0.0
        self._newest_batch = -1, now() - _BUSY_S
        self.state = LifecycleState.STOPPED
        self.reason = ""
        self.restarts = 0
        self._since = now()
        self._last_uptime = 0.0
        self._thread = threading.Thread(target=self._run_jobs, daemon=True, name=f"stream {name}")
        self._thread.start()

    def start(self, should_retry: bool = False) -> None:
        """Start the stream, and wait until that is done.

        Args:
            should_retry: try again later when it does not start, as when it fails while it runs.

        Raises:
            StreamerError: it did not start, and is stopped.
        """
        self._submit(lambda: self._begin_start(should_retry))

    def stop(
        self, timeout: float | None = None, state: LifecycleState = LifecycleState.STOPPED
    ) -> None:
        """Stop the stream between two micro-batches, and wait until that is done.

        Args:
            timeout: seconds for the micro-batch in hand.
            state: what it comes to.
        """
        run = self._run
        if run is not None:
            run.interrupt()
        self._submit(lambda: self._stop(timeout, state))

    def replace(self, change: Change) -> bool:
        """Let another revision take the place of the run, and wait until that is done.

        Returns:
            Whether there was a run; else the next start has to do it.

        Raises:
            StreamerError: it does not run; what ran before does.
        """
        results: list[bool] = []
        self._submit(lambda: results.append(self._replace(change)))
        return results[0]

    def set_poll_rates(self, rest_s: float, min_wait_s: float) -> None:
        """Say how often the stream looks for data, and takes it; see `Run.pace`."""
        self._poll_rates = rest_s, min_wait_s

    @property
    def is_busy(self) -> bool:
        """Whether the stream has delivered something of late."""
        return self.state in ACTIVE and self._now() - self._newest_batch[1] < _BUSY_S

    def uptime(self) -> float:
        """Return for how long the stream runs, s; of one that does not, how long it has run."""
        return self._now() - self._since if self.state in ACTIVE else self._last_uptime

    def close(self) -> None:
        """End the thread; the stream has been stopped."""
        self._jobs.put(None)
        self._thread.join(30)

    def _submit(self, action: Callable[[], None]) -> None:
        done: Future[None] = Future()

        def job() -> None:
            try:
                action()
            except BaseException as e:
                done.set_exception(e)
            else:
                done.set_result(None)

        self._jobs.put(job)
        done.result()

    def _run_jobs(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._next_wait())
            except queue.Empty:
                self._poll()
                continue
            if job is None:
                return
            job()

    def _next_wait(self) -> float | None:
        if self.state in (LifecycleState.RESTARTING, LifecycleState.WAITING):
            return max(self._restart_at - self._now(), 0.0)
        return self._poll_interval() if self._run is not None else None

    def _poll(self) -> None:
        """Look at the stream, or start it again when it is time to."""
        try:
            if self._run is None:
                self._start()
                return
            self._run.set_poll_rates(*self._poll_rates)
            if (batch := self._run.newest_batch()) != self._newest_batch[0]:
                self._newest_batch = batch, self._now()
            began = self._start_slot_since
            if began is not None and (
                self._run.newest_batch() >= 0 or self._now() - began > _MAX_START_S
            ):
                self._release_start_slot()
            if self._run.poll():
                self._handle_end()
        except BaseException as e:
            # Whatever goes wrong in one stream, `sys.exit` too, must not end its thread.
            self._handle_failure(e)

    def _handle_end(self) -> None:
        self._stop_run(has_ended=True)
        self._set_state(LifecycleState.ENDED)
        self._on_state(LifecycleState.ENDED)

    def _begin_start(self, should_retry: bool) -> None:
        if self._run is not None:
            return
        self._failures, self._failed_batch = 0, -1
        self._wait_count = 0
        self.restarts = 0
        try:
            self._start()
        except BaseException as e:
            # What a server or the machine lacks now says nothing about the config.
            if not should_retry and not is_transient(e):
                self._set_state(LifecycleState.STOPPED)
                if isinstance(e, Exception):
                    raise
                raise StreamerError(f"it ended itself: {type(e).__name__}: {e}") from e
            self._handle_failure(e)

    def _start(self) -> None:
        if self.state != LifecycleState.WAITING:
            self._set_state(LifecycleState.STARTING)
        self._start_slot_since = self._now() if self._start_limiter.acquire() else None
        try:
            run = self._make()
            run.start()
        except BaseException:
            self._release_start_slot()
            raise
        self._run = run
        run.set_poll_rates(*self._poll_rates)
        self._set_state(LifecycleState.RUNNING)

    def _stop(self, timeout: float | None, state: LifecycleState) -> None:
        self._stop_run(timeout)
        self._set_state(state)

    def _replace(self, change: Change) -> bool:
        if self._run is None:
            return False
        self._run.replace(change)
        self._failures, self._failed_batch = 0, -1
        return True

    def _stop_run(self, timeout: float | None = None, has_ended: bool = False) -> None:
        run, self._run = self._run, None
        self._release_start_slot()
        if run is not None:
            run.stop(timeout, has_ended)

    def _release_start_slot(self) -> None:
        if self._start_slot_since is not None:
            self._start_slot_since = None
            self._start_limiter.release()

    def _handle_failure(self, error: BaseException) -> None:
        """Decide what becomes of a stream that failed."""
        known = isinstance(error, StreamerError)
        text = str(error) if known else root_cause_line(f"{type(error).__name__}: {error}")
        batch = self._run.newest_batch() if self._run is not None else self._failed_batch
        if batch > self._failed_batch:
            self._failures, self._failed_batch = 0, batch
            self._wait_count = 0
        passing = is_transient(error, returned=self._wait_count > 0 and batch < 0)
        self._failures += not passing
        try:
            self._stop_run(0.0)
        except BaseException as e:
            self._log("WARN", f"Something of the stream was left behind: {e}", {})
        if passing:
            self._wait_and_retry(text)
            return
        self._wait_count = 0
        if self._failures > self._policy.max_restarts:
            self._log("ERROR", f"The stream has failed, and is not started again: {text}", {})
            self._set_state(LifecycleState.FAILED, text)
            self._on_state(LifecycleState.FAILED)
            return
        pause = self._policy.pause_after(self._failures)
        self._restart_at = self._now() + pause
        self.restarts += 1
        self._log("ERROR", f"The stream failed: {text}; starting it again in {pause:g} s", {})
        self._set_state(LifecycleState.RESTARTING, text)
        self._on_state(LifecycleState.RESTARTING)

    def _wait_and_retry(self, text: str) -> None:
        """Try again for ever, with growing pauses: it is not the config that is at fault."""
        if not self._wait_count:
            self._waiting_since = self._wall_clock()
        self._wait_count += 1
        pause = min(self._policy.pause_after(self._wait_count), _MAX_WAIT_PAUSE_S)
        self._restart_at = self._now() + pause
        self.restarts += 1
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._waiting_since))
        reason = f"{text}; waiting since {since}"
        self._log("ERROR", f"The stream waits: {reason}; trying again in {pause:g} s", {})
        self._set_state(LifecycleState.WAITING, reason)
        self._on_state(LifecycleState.WAITING)

    def _set_state(self, state: LifecycleState, reason: str = "") -> None:
        if state != LifecycleState.STARTING:
            self.reason = reason
        if self.state in ACTIVE and state not in ACTIVE:
            self._last_uptime = self._now() - self._since
        elif self.state not in ACTIVE and state in ACTIVE:
            self._since = self._now()
        self.state = state
