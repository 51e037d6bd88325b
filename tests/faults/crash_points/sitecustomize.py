"""Ends a program at a step of a commit, as kill -9 does.

Python imports it at the start of each process of the program. The environment names the step: the
module, its class or function, `before` or `after`, and which of its calls.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from typing import Any

_STEP = "STREAMER_TEST_CRASH"


def _watch(step: str) -> None:
    module_name, owner_name, name, moment, call = step.split(" ")
    while module_name not in sys.modules or not hasattr(sys.modules[module_name], owner_name):
        time.sleep(0.01)
    owner = getattr(sys.modules[module_name], owner_name)
    original, calls = getattr(owner, name), 0

    @functools.wraps(original)
    def crash(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == int(call) and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **named)
        if calls == int(call):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, crash)


if step := os.environ.get(_STEP):
    threading.Thread(target=_watch, args=(step,), daemon=True).start()
