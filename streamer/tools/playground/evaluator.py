"""Trials of mappings in processes of their own, each with a bounded time and memory."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import Final, cast

import orjson

from streamer.tools.child_environment import make_child_environment
from streamer.tools.playground.trial import Answer, Request, make_problem

TIME_LIMIT_S: Final = 2.0
MEMORY_LIMIT_BYTES: Final = 1 << 30
_MAX_ANSWER_BYTES: Final = 32 << 20
_START_TIMEOUT_S: Final = 30.0


class BusyError(Exception):
    """All processes are at work, and enough others wait for them already."""


class Evaluator:
    """Tries mappings, several at a time.

    A process that takes too long or dies is replaced; the others don't notice.
    """

    def __init__(
        self,
        impure: bool,
        processes: int = 1,
        seconds: float = TIME_LIMIT_S,
        memory: int = MEMORY_LIMIT_BYTES,
        waiting: int = 16,
    ) -> None:
        """Begin without any process; they are started when they are needed.

        Args:
            impure: whether mappings may read files and environment variables.
            processes: how many trials may run at a time.
            seconds: how long one may take.
            memory: bytes of address space that a process may have.
            waiting: how many trials may wait for a process.
        """
        self._impure = impure
        self._seconds = seconds
        self._memory = memory
        self._waiting = waiting
        self._waiters = 0
        self._free: asyncio.LifoQueue[Process | None] = asyncio.LifoQueue()
        self._all: set[Process] = set()
        for _ in range(processes):
            self._free.put_nowait(None)

    async def attempt(self, request: Request) -> Answer:
        """Try a mapping; too much time or memory is a problem in the answer.

        Raises:
            Busy: too many wait already.
        """
        if self._waiters >= self._waiting and self._free.empty():
            raise BusyError
        self._waiters += 1
        try:
            process = await self._free.get()
        finally:
            self._waiters -= 1
        try:
            if process is None or process.returncode is not None:
                process = await self._start()
            answer = await asyncio.wait_for(self._request(process, request), self._seconds)
        except TimeoutError:
            return _make_stopped_answer(
                f"the mapping was stopped after {self._seconds:g} seconds; give it less to do"
            )
        except (EOFError, ConnectionError, asyncio.LimitOverrunError, ValueError):
            return _make_stopped_answer(
                "the mapping ended the process that tried it, probably for lack of memory "
                f"({self._memory >> 20} MB); give it less to do"
            )
        else:
            done, process = process, None
            self._free.put_nowait(done)
            return answer
        finally:
            if process is not None:
                # Also when this task is cancelled: the process is in the middle of something.
                self._end(process)
                self._free.put_nowait(None)

    def stop_idle(self) -> None:
        """End the processes that have nothing to do; others are started when they are needed."""
        for process in [self._free.get_nowait() for _ in range(self._free.qsize())]:
            if process is not None:
                self._end(process)
            self._free.put_nowait(None)

    async def close(self) -> None:
        """End all processes."""
        for process in self._all:
            self._end(process)
        for process in self._all:
            await process.wait()

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "streamer.tools.playground.worker"),
            *("--seconds", str(self._seconds), "--memory", str(self._memory)),
            *(() if self._impure else ("--no-impure",)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=make_child_environment(self._impure),
            limit=_MAX_ANSWER_BYTES,
        )
        self._all = {one for one in self._all if one.returncode is None} | {process}
        assert process.stdout is not None
        # How long Python takes to start is not the mapping's fault.
        await asyncio.wait_for(process.stdout.readline(), _START_TIMEOUT_S)
        return process

    async def _request(self, process: Process, request: Request) -> Answer:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(orjson.dumps(request) + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return cast(Answer, orjson.loads(line))

    def _end(self, process: Process) -> None:
        with suppress(ProcessLookupError):
            process.kill()


def _make_stopped_answer(text: str) -> Answer:
    return {"problem": make_problem(text)}
