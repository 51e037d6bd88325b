"""Work at the end of a process, a worker's too, which does not end as other programs do.

Spark's daemon sends SIGHUP to the group of its workers as it ends, and the kernel kills those that
outlive it; a worker whose task has failed leaves by `os._exit`. A worker whose executor has gone
cannot even report that: it falls out of the daemon's loop and ends as programs do. A worker with
work to do at its end is in a group of its own. It sees that its daemon has gone, or that it leaves
itself, does the work, and ends. A kill by SIGKILL, or a crash, leaves no time.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_GRACE_S: Final = 10.0
_POLL_INTERVAL_S: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1
"""From `linux/prctl.h`: the signal that the kernel sends when the parent ends; see prctl(2)."""

_EXIT: Final = os._exit


class _ProcessEnd:
    """The work of this process."""

    def __init__(self) -> None:
        self._work: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        # Held while work is done: the end of the daemon and the worker's own may come together, and
        # the one that finds nothing more to do must not end the process below the other.
        self._running = threading.RLock()
        self._is_worker = False
        self._is_prepared = False
        self._has_begun = threading.Event()

    def mark_worker(self) -> None:
        self._is_worker = True

    def add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)
            if self._is_prepared:
                return
            self._is_prepared = True
        atexit.register(self._run_in_time)
        if self._is_worker:
            self._prepare_worker()

    def _prepare_worker(self) -> None:
        parent = os.getppid()
        with suppress(OSError):
            os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 0)
        # Both threads begin here: from Python 3.12 on, none begins once the interpreter ends.
        for target, args in ((self._watch, (parent,)), (self._limit, ())):
            threading.Thread(target=target, args=args, daemon=True, name="process-end").start()
        # Spark's daemon has the worker leave so, past all that Python does at an end.
        _replace_exit(self._exit)

    def _watch(self, parent: int) -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_INTERVAL_S)
        self._exit(0)

    def _limit(self) -> None:
        """End the process where its work does not come back."""
        self._has_begun.wait()
        time.sleep(_GRACE_S)
        _EXIT(1)

    def _exit(self, code: int) -> None:
        """Do the work, and end."""
        self._run_in_time()
        _EXIT(code)

    def _run_in_time(self) -> None:
        """Do the work; where it does not come back, a worker ends."""
        self._has_begun.set()
        self.run()

    def run(self) -> None:
        with self._running:
            while True:
                with self._lock:
                    if not self._work:
                        return
                    work = self._work.pop()
                with suppress(Exception):
                    work()

    def reset_after_fork(self) -> None:
        """Leave the work to the process that was forked from."""
        self._work, self._lock, self._running = [], threading.Lock(), threading.RLock()
        self._is_prepared, self._has_begun = False, threading.Event()
        _replace_exit(_EXIT)


def _replace_exit(leave: Callable[[int], object]) -> None:
    os.__dict__["_exit"] = leave


_END: Final = _ProcessEnd()
os.register_at_fork(after_in_child=_END.reset_after_fork)


def mark_worker_process() -> None:
    """Note that this process is a worker of Spark."""
    _END.mark_worker()


def run_at_process_end(work: Callable[[], None]) -> None:
    """Have something done when this process ends in good order."""
    _END.add(work)
