"""Work at the end of a process, a worker's too, which Spark ends by signals.

Spark's daemon ends its workers by SIGHUP as it ends itself, and the kernel kills those that outlive
it. A worker with work to do handles the signals itself, and watches the daemon: it gets some
seconds more, and then ends as it would have. A kill by SIGKILL, or a crash, leaves no time.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_GRACE_S: Final = 10.0
_POLL_INTERVAL_S: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1
"""From `linux/prctl.h`: the signal that the kernel sends when the parent ends; see prctl(2)."""


class _ProcessEnd:
    """The work of this process."""

    def __init__(self) -> None:
        self._work: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._is_worker = False
        self._is_prepared = False
        self._parent = 0

    def mark_worker(self) -> None:
        self._is_worker = True

    def add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)
            if self._is_prepared:
                return
            self._is_prepared = True
        if not self._is_worker:
            atexit.register(self._run)
            return
        self._parent = os.getppid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 0)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, daemon=True, name="process-end").start()

    def _on_signal(self, number: int, frame: Any) -> None:
        self._end()

    def _watch(self) -> None:
        while os.getppid() == self._parent:
            time.sleep(_POLL_INTERVAL_S)
        self._end()

    def _end(self) -> None:
        """Do the work, and end; work that does not come back is given up."""
        timer = threading.Timer(_GRACE_S, os._exit, (1,))
        timer.daemon = True
        timer.start()
        self._run()
        os._exit(0)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._work:
                    return
                work = self._work.pop()
            with suppress(Exception):
                work()

    def reset_after_fork(self) -> None:
        """Leave the work to the process that was forked from."""
        self.__init__()  # type: ignore[misc]


_END: Final = _ProcessEnd()
os.register_at_fork(after_in_child=_END.reset_after_fork)


def mark_worker_process() -> None:
    """Note that this process is a worker of Spark."""
    _END.mark_worker()


def run_at_process_end(work: Callable[[], None]) -> None:
    """Have something done when this process ends in good order."""
    _END.add(work)
