"""End a process with the one that has forked it: a worker without its daemon sends for nobody.

Spark ends workers by their daemon. When that is killed, as the kernel does it when memory runs out,
they go on, and one that tries to reach an output tries for ever, whatever has run since.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""From `linux/prctl.h`: the signal that the kernel sends when the parent ends; see prctl(2)."""

_POLL_INTERVAL_S: Final = 1.0


def end_children_with_this_process() -> None:
    """Have every process that is forked from this one killed when this one ends, however it does.

    It is for a process that forks in its main thread: on Linux the end of the thread that has
    forked counts as the end of the process. What its forks fork is theirs.
    """
    library = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    parent = forking = os.getpid()

    def note() -> None:
        nonlocal forking
        forking = os.getpid()

    def watch() -> None:
        if forking != parent:
            return
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
        else:
            threading.Thread(
                target=_exit_with_parent, args=(parent,), daemon=True, name="parent"
            ).start()

    os.register_at_fork(before=note, after_in_child=watch)


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_INTERVAL_S)
    os._exit(1)
