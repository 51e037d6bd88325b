"""Trials of configs, each in a process of its own with bounded time, memory and output."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from streamer.tools.child_environment import make_child_environment
from streamer.tools.config_trial.request import TrialRequest

TIME_LIMIT_S: Final = 30.0
"""How long a trial may take once its process has started; streams may keep the machine busy."""

CPU_LIMIT_S: Final = 10.0
"""Processor time that a trial may take beside its start."""

MEMORY_LIMIT_BYTES: Final = 512 << 20
"""Bytes of address space that a trial may take beside the program itself."""

MAX_OUTPUT_BYTES: Final = 2 << 20
"""Bytes of findings; what would follow is left out."""

_START_TIMEOUT_S: Final = 30.0
_EXIT_TIMEOUT_S: Final = 2.0
# How servers are reached, for a trial as for a deploy. The config itself gets none of them.
_NETWORK_VARIABLES: Final = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
# A pool of threads for each library would take address space, and one trial all cores.
_ONE_THREAD: Final = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS"), "1"
)
_NICENESS: Final = 5


class TrialsBusyError(Exception):
    """All processes are at work, and enough trials wait for them already."""


@dataclass
class TrialOutcome:
    """The findings of a trial.

    Attributes:
        pieces: the findings, in the order in which they were made.
        is_cut: there was more than is shown.
        stopped: why the trial has not come to its end; empty when it has.
    """

    pieces: list[dict[str, Any]] = field(default_factory=list)
    is_cut: bool = False
    stopped: str = ""


class ConfigTrials:
    """Runs trials, some at a time; each has a process that no other trial uses after it."""

    def __init__(
        self,
        processes: int = 3,
        waiting: int = 8,
        memory: int = MEMORY_LIMIT_BYTES,
        max_output: int = MAX_OUTPUT_BYTES,
        seconds: float = TIME_LIMIT_S,
        cpu_seconds: float = CPU_LIMIT_S,
    ) -> None:
        """Begin without any process.

        Args:
            processes: how many trials may run at a time.
            waiting: how many may wait for that.
            memory: bytes that one may take.
            max_output: bytes of findings.
            seconds: how long one may take.
            cpu_seconds: processor time that one may take.
        """
        self._slots = asyncio.Semaphore(processes)
        self._waiting = waiting
        self._waiters = 0
        self._memory = memory
        self._max_output = max_output
        self._seconds = seconds
        self._cpu_seconds = cpu_seconds
        self._running: set[Process] = set()

    async def run(self, request: TrialRequest) -> TrialOutcome:
        """Run a trial; too much time, memory or output is a part of the outcome.

        Raises:
            TrialsBusyError: too many wait already.
        """
        if self._waiters >= self._waiting and self._slots.locked():
            raise TrialsBusyError
        self._waiters += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiters -= 1
        directory = tempfile.mkdtemp(prefix="streamer-trial-")
        try:
            return await self._run_in_process(request, directory)
        finally:
            self._slots.release()
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    async def close(self) -> None:
        """End all trials."""
        for process in [*self._running]:
            _end_process(process)
            await process.wait()

    async def _run_in_process(self, request: TrialRequest, directory: str) -> TrialOutcome:
        outcome, reading = TrialOutcome(), _Reading()
        process = await self._start(request, directory)
        self._running.add(process)
        is_late = has_died = False
        try:
            assert process.stdout is not None
            async with asyncio.timeout(_START_TIMEOUT_S):
                await _send_request(process, request)
                started = await process.stdout.readline()
            if not started.endswith(b"\n"):
                raise EOFError
            async with asyncio.timeout(self._seconds):
                await reading.read_into(outcome, process)
        except TimeoutError:
            is_late = True
        except (EOFError, ConnectionError, ValueError):
            has_died = True
            # Its own end says why; it has little time for that.
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _EXIT_TIMEOUT_S)
        finally:
            died_by = process.returncode
            _end_process(process)
            self._running.discard(process)
            await process.wait()
        if is_late or has_died:
            outcome.stopped = self._explain_end(is_late, died_by, reading.begins)
        return outcome

    def _explain_end(self, is_late: bool, died_by: int | None, begins: str) -> str:
        at = f" in {begins}" if begins else ""
        if is_late:
            return f"stopped after {self._seconds:g} seconds{at}; give it less to do"
        if hasattr(signal, "SIGXCPU") and died_by == -signal.SIGXCPU:
            limit = f"{self._cpu_seconds:g} seconds of processor time"
            return f"stopped after {limit}{at}; give it less to do"
        return (
            f"the process of the trial ended{at}, probably for lack of memory "
            f"({self._memory >> 20} MB); give it less to do"
        )

    async def _start(self, request: TrialRequest, directory: str) -> Process:
        environment = make_child_environment(request.permissions.local, _NETWORK_VARIABLES)
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "streamer.tools.config_trial.worker"),
            *("--seconds", str(self._seconds), "--cpu-seconds", str(self._cpu_seconds)),
            *("--memory", str(self._memory)),
            *("--max-output", str(self._max_output), "--niceness", str(_NICENESS)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=directory,
            env={**environment, **_ONE_THREAD},
            limit=2 * self._max_output,
            # So that programs which it starts end with it.
            start_new_session=True,
        )


class _Reading:
    """The pieces of one trial as they come.

    Attributes:
        begins: what the trial was doing last, such as a test's name.
    """

    def __init__(self) -> None:
        self.begins = ""

    async def read_into(self, outcome: TrialOutcome, process: Process) -> None:
        """Add pieces to an outcome until the trial has come to its end."""
        while "end" not in (piece := await _read_piece(process)):
            if "cut" in piece:
                outcome.is_cut = True
            elif "begins" in piece:
                self.begins = str(piece["begins"])
            else:
                outcome.pieces.append(piece)


async def _send_request(process: Process, request: TrialRequest) -> None:
    assert process.stdin is not None
    process.stdin.write(await asyncio.to_thread(pickle.dumps, request))
    await process.stdin.drain()
    process.stdin.close()


async def _read_piece(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    piece: dict[str, Any] = orjson.loads(line)
    return piece


def _end_process(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
