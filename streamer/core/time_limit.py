"""A bound on the time that work on one message takes: the section `limits` has it.

A thread watches mappings, interpolations and processors that only compute. A call that is overdue
gets an exception, which Python raises as soon as its own code runs. Code in C cannot be
interrupted: where the process is a worker it is ended, and the message is found as one that has
ended it (`streamer.engine.stage.crash_search`). C code that keeps the interpreter to itself stops
this thread as well; a thread of `faulthandler`, which needs no interpreter, ends the process then.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from streamer.core.durations import format_duration
from streamer.core.errors import StreamerError

T = TypeVar("T")

OVERDUE_EXIT_CODE: Final = 1
"""Exit code of a process that was ended since a call did not come back; it is `faulthandler`'s."""

_GRACE_S: Final = 1.0
"""Seconds that C code has to come back, beyond as long again as the limit."""

_STDERR: Final = 2

_CHECKS_PER_LIMIT: Final = 4
"""How often the thread looks while a limit passes."""


class TimeLimitError(StreamerError):
    """Work on a message has taken longer than `limits.time` allows."""


class _OverdueError(BaseException):
    """Raised in the thread that is overdue; mappings catch no such exception."""


@dataclass(slots=True)
class _Call:
    """A call that is being watched: when it is due and when C code is, monotonic s.

    Attributes:
        due: when it is interrupted.
        last: when it ends the process.
        is_interrupted: whether it was interrupted.
        wakes: whether a signal wakes it where it waits, which is possible in the main thread.
    """

    due: float
    last: float
    is_interrupted: bool = False
    wakes: bool = False


class _Watch:
    """The calls of this process that are being watched, by thread."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._lock = threading.Lock()
        self._pause = _GRACE_S
        self._process = 0
        self._ends_process = False
        self._is_armed = False

    def end_processes(self) -> None:
        """Let calls that do not come back end the process."""
        self._ends_process = True

    @property
    def is_watching(self) -> bool:
        """Whether a call of this thread is being watched."""
        return threading.get_ident() in self._calls

    def begin(self, seconds: float, wakes: bool = False) -> None:
        now = time.monotonic()
        call = _Call(now + seconds, now + 2 * seconds + _GRACE_S, wakes=wakes)
        with self._lock:
            self._calls[threading.get_ident()] = call
            self._pause = min(self._pause, max(seconds / _CHECKS_PER_LIMIT, 0.01))
            # A fork has none of its parent's threads.
            starts, self._process = self._process != os.getpid(), os.getpid()
            if self._ends_process and not self._is_armed:
                # At once, for C code may keep the other thread from running from now on.
                self._arm(call.last - now)
        if starts:
            threading.Thread(target=self._watch_calls, daemon=True, name="time-limit").start()

    def restart(self, seconds: float) -> None:
        """Let the call of this thread have the whole time from now on."""
        call = self._calls.get(threading.get_ident())
        if call is not None and not call.is_interrupted:
            now = time.monotonic()
            call.due, call.last = now + seconds, now + 2 * seconds + _GRACE_S

    def end(self) -> None:
        with self._lock:
            self._calls.pop(threading.get_ident(), None)

    def reset_after_fork(self) -> None:
        """Begin anew in a fork, where the lock may be held by a thread that is not there."""
        self._lock = threading.Lock()
        self._calls = {}
        self._is_armed = False

    def _watch_calls(self) -> None:
        import ctypes

        while True:
            time.sleep(self._pause)
            now = time.monotonic()
            with self._lock:
                for thread, call in self._calls.items():
                    if now > call.due and not call.is_interrupted:
                        call.is_interrupted = True
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(
                            ctypes.c_ulong(thread), ctypes.py_object(_OverdueError)
                        )
                        if call.wakes:
                            signal.pthread_kill(thread, signal.SIGALRM)
                    if now > call.last and self._ends_process:
                        os._exit(OVERDUE_EXIT_CODE)
                last = max((call.last for call in self._calls.values()), default=None)
                if self._ends_process and last is not None:
                    # Put off again and again, as long as this thread runs.
                    self._arm(max(last - now, 0))
                elif self._is_armed:
                    faulthandler.cancel_dump_traceback_later()
                    self._is_armed = False

    def _arm(self, seconds: float) -> None:
        # By its number, since what stands for the standard error may be no file.
        faulthandler.dump_traceback_later(seconds + _GRACE_S, exit=True, file=_STDERR)
        self._is_armed = True


_WATCH: Final = _Watch()
os.register_at_fork(after_in_child=_WATCH.reset_after_fork)


def end_process_when_overdue() -> None:
    """Let this process, a worker, end itself where code in C does not come back in time."""
    _WATCH.end_processes()


def restart_time_limit(limit: int) -> None:
    """Give the call that is being watched in this thread the whole time again, ns."""
    _WATCH.restart(limit / 1e9)


def run_within_time(
    work: Callable[..., T], limit: int, *given: Any, by: str = "limits.time", wakes: bool = False
) -> T:
    """Return what some work returns.

    Within work that is bounded already nothing is bounded anew: the time is that of the whole.

    Args:
        work: it may be interrupted wherever it is.
        limit: how long it may take, ns.
        given: what the work is called with.
        by: the name of the setting that sets the limit.
        wakes: whether work that waits is interrupted too, for the network, a lock or a time. That
            is possible in the main thread alone, by SIGALRM.

    Raises:
        TimeLimitError: it takes longer; its traceback shows where the work was.
    """
    if _WATCH.is_watching:
        return work(*given)
    wakes = wakes and threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, _ignore_signal) if wakes else None
    try:
        try:
            _WATCH.begin(limit / 1e9, wakes)
            made = work(*given)
        finally:
            _WATCH.end()
        # What was raised in this thread meanwhile comes when a function begins, at the latest.
        _raise_pending_interrupt()
        return made
    except _OverdueError as overdue:
        _WATCH.end()
        error = TimeLimitError(
            f"it takes longer than the {format_duration(limit)} that {by} allows"
        )
        raise error.with_traceback(overdue.__traceback__) from None
    finally:
        if wakes:
            signal.signal(signal.SIGALRM, before)


def _ignore_signal(number: int, frame: Any) -> None:
    """Let the thread run code, in which the exception is raised that waits for it."""


def _raise_pending_interrupt() -> None:
    return
