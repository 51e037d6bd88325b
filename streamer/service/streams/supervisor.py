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
from streamer.engine.delivery import LogLine
from streamer.engine.tapping import Tap
from streamer.engine.troubles import said
from streamer.errors import StreamerError, is_passing
from streamer.plan.judgement import Judgement
from streamer.service.replacing import OnReset

Log = Callable[[str, str, Mapping[str, Any]], None]


class State(StrEnum):
    """What a stream does."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    WAITING = "waiting"
    PAUSED = "paused"
    ENDED = "ended"
    FAILED = "failed"
    STOPPED = "stopped"


_STARTING: Final = 20.0
"""Seconds after which a stream that has delivered nothing is not taken to be starting."""

_MAX_WAIT_PAUSE_S: Final = 30.0
"""Between two tries of a stream that waits for a server or the machine: each takes seconds."""

_BUSY: Final = 30.0
"""Seconds for which a stream that has delivered something is taken to be busy."""

ACTIVE = frozenset({State.STARTING, State.RUNNING, State.RESTARTING, State.WAITING})
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
    judgement: Judgement
    on_reset: OnReset | None = None
    revision: str = ""
    probation: float | None = None


class Run(Protocol):
    """One run of a stream, from its start to its end."""

    def start(self) -> None:
        """Start it; what it has begun when that raises is undone.

        Raises:
            StreamerError: it cannot be started.
        """

    def poll(self) -> bool:
        """Look after it; return whether it is over: its input has ended, and all is done.

        Raises:
            StreamerError: it failed too often at the same place.
        """

    def batch(self) -> int:
        """Return the number of the newest micro-batch; it grows when the stream gets on."""

    def windows(self) -> Mapping[str, Any]:
        """Return its open windows, see `open_windows`."""

    def tap(self) -> Tap | None:
        """Return its samples of messages; None while it is not open."""

    def pace(self, seconds: float, patience: float) -> None:
        """Say how often it looks for data, and takes it.

        Args:
            seconds: how long its source may rest between two looks that find nothing.
            patience: how long data waits at least, s.
        """

    def interrupt(self) -> None:
        """Let it give up waiting for what fails, from another thread; `stop` comes next."""

    def replace(self, change: Change) -> None:
        """Let another revision take its place.

        Raises:
            StreamerError: it does not run; what ran before does.
        """

    def stop(self, timeout: float | None = None, over: bool = False) -> None:
        """Stop it, and give back what it holds.

        Args:
            timeout: seconds for the micro-batch in hand; the config's `shutdown_timeout` when None.
            over: whether its input has ended, so that the next start begins anew.
        """


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often a stream that fails is started again.

    Attributes:
        limit: restarts without getting further, after which it stays as it is.
        first: the pause before the first one, s; each is twice as long as the one before.
        longest: the longest pause, s.
    """

    limit: int = 5
    first: float = 1.0
    longest: float = 60.0

    def pause(self, failures: int) -> float:
        """Return the pause after so many failures in a row, s."""
        return float(min(self.first * 2.0 ** (failures - 1), self.longest))


class Gate:
    """Lets few streams at a time through their start, to their first micro-batch.

    That takes new processes and much of the cores; where all begin at once, none gets anywhere.
    """

    def __init__(self, places: int, patience: float = 60.0) -> None:
        """Take how many pass at a time, and after how many seconds one goes on all the same."""
        self._places = threading.Semaphore(places)
        self._patience = patience

    def enter(self) -> bool:
        """Wait for a place; return whether there was one in time."""
        return self._places.acquire(timeout=self._patience)

    def leave(self) -> None:
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
        make: Callable[[], Run],
        log: LogLine,
        policy: Restarts,
        look: Callable[[], float],
        gate: Gate,
        told: Callable[[State], None] = lambda state: None,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin with a stream that is stopped.

        Args:
            name: of the thread.
            make: makes a run.
            log: takes log lines.
            policy: how often it is started again.
            look: gives the seconds between two looks at it.
            gate: what it passes when it starts.
            told: hears of every state that the stream comes to by itself.
            now: a clock that never runs backwards, s.
            wall: the time of day, seconds since 1970.
        """
        self._wall = wall
        self._waits = 0
        self._waits_since = 0.0
        self._make = make
        self._log = log
        self._policy = policy
        self._look = look
        self._gate = gate
        self._in_gate: float | None = None
        self._told = told
        self._now = now
        self._run: Run | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._failures = 0
        self._failed_at = -1
        self._again = 0.0
        self._pace = 0.0, 0.0
        self._newest = -1, now() - _BUSY
        self.state = State.STOPPED
        self.reason = ""
        self.restarts = 0
        self._since = now()
        self._ran = 0.0
        self._thread = threading.Thread(target=self._loop, daemon=True, name=f"stream {name}")
        self._thread.start()

    def begin(self, patient: bool = False) -> None:
        """Start the stream, and wait until that is done.

        Args:
            patient: try again later when it does not start, as when it fails while it runs.

        Raises:
            StreamerError: it did not start, and is stopped.
        """
        self._do(lambda: self._begin(patient))

    def stop(self, timeout: float | None = None, state: State = State.STOPPED) -> None:
        """Stop the stream between two micro-batches, and wait until that is done.

        Args:
            timeout: seconds for the micro-batch in hand.
            state: what it comes to.
        """
        run = self._run
        if run is not None:
            run.interrupt()
        self._do(lambda: self._stop(timeout, state))

    def replace(self, change: Change) -> bool:
        """Let another revision take the place of the run, and wait until that is done.

        Returns:
            Whether there was a run; else the next start has to do it.

        Raises:
            StreamerError: it does not run; what ran before does.
        """
        found: list[bool] = []
        self._do(lambda: found.append(self._replace(change)))
        return found[0]

    def pace(self, seconds: float, patience: float) -> None:
        """Say how often the stream looks for data, and takes it; see `Run.pace`."""
        self._pace = seconds, patience

    @property
    def busy(self) -> bool:
        """Whether it has delivered something of late."""
        return self.state in ACTIVE and self._now() - self._newest[1] < _BUSY

    def uptime(self) -> float:
        """Return for how long the stream runs, s; of one that does not, how long it has run."""
        return self._now() - self._since if self.state in ACTIVE else self._ran

    def close(self) -> None:
        """End the thread; the stream has been stopped."""
        self._jobs.put(None)
        self._thread.join(30)

    def _do(self, action: Callable[[], None]) -> None:
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

    def _loop(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._wait())
            except queue.Empty:
                self._see()
                continue
            if job is None:
                return
            job()

    def _wait(self) -> float | None:
        if self.state in (State.RESTARTING, State.WAITING):
            return max(self._again - self._now(), 0.0)
        return self._look() if self._run is not None else None

    def _see(self) -> None:
        """Look at the stream, or start it again when it is time to."""
        try:
            if self._run is None:
                self._start()
                return
            self._run.pace(*self._pace)
            if (batch := self._run.batch()) != self._newest[0]:
                self._newest = batch, self._now()
            began = self._in_gate
            if began is not None and (self._run.batch() >= 0 or self._now() - began > _STARTING):
                self._leave_gate()
            if self._run.poll():
                self._over()
        except BaseException as e:
            # Whatever goes wrong in one stream, `sys.exit` too, must not end its thread.
            self._failed(e)

    def _over(self) -> None:
        self._end(over=True)
        self._come_to(State.ENDED)
        self._told(State.ENDED)

    def _begin(self, patient: bool) -> None:
        if self._run is not None:
            return
        self._failures, self._failed_at = 0, -1
        self._waits = 0
        self.restarts = 0
        try:
            self._start()
        except BaseException as e:
            # What a server or the machine lacks now says nothing about the config.
            if not patient and not is_passing(e):
                self._come_to(State.STOPPED)
                if isinstance(e, Exception):
                    raise
                raise StreamerError(f"it ended itself: {type(e).__name__}: {e}") from e
            self._failed(e)

    def _start(self) -> None:
        if self.state != State.WAITING:
            self._come_to(State.STARTING)
        self._in_gate = self._now() if self._gate.enter() else None
        try:
            run = self._make()
            run.start()
        except BaseException:
            self._leave_gate()
            raise
        self._run = run
        run.pace(*self._pace)
        self._come_to(State.RUNNING)

    def _stop(self, timeout: float | None, state: State) -> None:
        self._end(timeout)
        self._come_to(state)

    def _replace(self, change: Change) -> bool:
        if self._run is None:
            return False
        self._run.replace(change)
        self._failures, self._failed_at = 0, -1
        return True

    def _end(self, timeout: float | None = None, over: bool = False) -> None:
        run, self._run = self._run, None
        self._leave_gate()
        if run is not None:
            run.stop(timeout, over)

    def _leave_gate(self) -> None:
        if self._in_gate is not None:
            self._in_gate = None
            self._gate.leave()

    def _failed(self, error: BaseException) -> None:
        """Decide what becomes of a stream that failed."""
        known = isinstance(error, StreamerError)
        text = str(error) if known else said(f"{type(error).__name__}: {error}")
        batch = self._run.batch() if self._run is not None else self._failed_at
        if batch > self._failed_at:
            self._failures, self._failed_at = 0, batch
            self._waits = 0
        passing = is_passing(error, returned=self._waits > 0 and batch < 0)
        self._failures += not passing
        try:
            self._end(0.0)
        except BaseException as e:
            self._log("WARN", f"Something of the stream was left behind: {e}", {})
        if passing:
            self._wait_until_passed(text)
            return
        self._waits = 0
        if self._failures > self._policy.limit:
            self._log("ERROR", f"The stream has failed, and is not started again: {text}", {})
            self._come_to(State.FAILED, text)
            self._told(State.FAILED)
            return
        pause = self._policy.pause(self._failures)
        self._again = self._now() + pause
        self.restarts += 1
        self._log("ERROR", f"The stream failed: {text}; starting it again in {pause:g} s", {})
        self._come_to(State.RESTARTING, text)
        self._told(State.RESTARTING)

    def _wait_until_passed(self, text: str) -> None:
        """Try again for ever, with growing pauses: it is not the config that is at fault."""
        if not self._waits:
            self._waits_since = self._wall()
        self._waits += 1
        pause = min(self._policy.pause(self._waits), _MAX_WAIT_PAUSE_S)
        self._again = self._now() + pause
        self.restarts += 1
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._waits_since))
        reason = f"{text}; waiting since {since}"
        self._log("ERROR", f"The stream waits: {reason}; trying again in {pause:g} s", {})
        self._come_to(State.WAITING, reason)
        self._told(State.WAITING)

    def _come_to(self, state: State, reason: str = "") -> None:
        if state != State.STARTING:
            self.reason = reason
        if self.state in ACTIVE and state not in ACTIVE:
            self._ran = self._now() - self._since
        elif self.state not in ACTIVE and state in ACTIVE:
            self._since = self._now()
        self.state = state
