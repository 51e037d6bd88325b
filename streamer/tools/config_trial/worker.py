"""The process that runs one trial of a config, and ends.

A config may run for ever, fill the memory or print without end. All of these end this process and
nothing else: its time, memory, processor time and output have bounds, and unless the config may see
files and the environment, it can write no file, and has few variables.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import orjson

from streamer.tools.config_trial.request import TrialRequest
from streamer.tools.config_trial.run_trial import run_trial, write_files

READY_LINE: Final = b'{"ready":true}\n'
END_LINE: Final = b'{"end":true}\n'
CUT_LINE: Final = b'{"cut":true}\n'

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_MAX_OPEN_FILES: Final = 256


class _OutputLimitError(BaseException):
    """There is more output than is shown; no handler of errors of a config may take it."""


def _limit_resources(seconds: float, cpu: float, memory: int, may_write: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Only for when the parent has died: it would have ended this process earlier.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + 1)
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * _PAGE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    cpu_seconds = math.ceil(time.process_time() + cpu)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = _MAX_OPEN_FILES if limit == resource.RLIM_INFINITY else min(limit, _MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if not may_write:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _load_needed() -> None:
    """Import what the trial needs, so that it counts as the start of the process."""
    import streamer.engine.offline.scripted
    import streamer.tools.tap.stages
    import streamer.tools.timeline.simulate
    import streamer.tools.unit_tests.stream_case
    import streamer.tools.unit_tests.suite  # noqa: F401


def _make_writer(max_bytes: int) -> Callable[[dict[str, Any]], None]:
    out, left = sys.stdout.buffer, max_bytes

    def emit(piece: dict[str, Any]) -> None:
        nonlocal left
        line = orjson.dumps(piece, default=str) + b"\n"
        left -= len(line)
        if left < 0:
            raise _OutputLimitError
        out.write(line)
        out.flush()

    return emit


def main(arguments: list[str] | None = None) -> None:
    """Run the trial that comes by the standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--cpu-seconds", type=float, required=True)
    parser.add_argument("--memory", type=int, required=True)
    parser.add_argument("--max-output", type=int, required=True)
    parser.add_argument("--niceness", type=int, default=0)
    options: Any = parser.parse_args(arguments)
    os.nice(options.niceness)
    # Only the program that started this process writes here.
    request: TrialRequest = pickle.loads(sys.stdin.buffer.read())
    _load_needed()
    out = sys.stdout.buffer
    directory = os.getcwd()
    if request.tests is not None:
        write_files(request.tests, directory)
    out.write(READY_LINE)
    out.flush()
    _limit_resources(
        options.seconds, options.cpu_seconds, options.memory, request.permissions.local
    )
    try:
        run_trial(request, directory, _make_writer(options.max_output))
    except _OutputLimitError:
        out.write(CUT_LINE)
    out.write(END_LINE)
    out.flush()


if __name__ == "__main__":
    main()
