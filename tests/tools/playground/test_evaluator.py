"""Trials in processes of their own: what ends one, and what does not."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from streamer.tools.playground.evaluator import BusyError, Evaluator

Attempt = Callable[[str], Awaitable[Any]]
ENDLESS = "root = range(0, 3000).map_each(a -> range(0, 3000).map_each(b -> range(0, 3000).sum()))"


def using(evaluator: Callable[[], Evaluator], use: Callable[[Evaluator, Attempt], Any]) -> Any:
    async def main() -> Any:
        made = evaluator()

        async def attempt(mapping: str) -> Any:
            return await made.attempt({"mapping": mapping, "input": '{"a":1}'})

        try:
            return await use(made, attempt)
        finally:
            await made.close()

    return asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds a process's memory")
@pytest.mark.parametrize(
    "mapping",
    [
        'root = range(0, 40).fold("x", i -> i.tally + i.tally).length()',
        "root = range(0, 40).fold([1], i -> i.tally.concat(i.tally)).length()",
    ],
)
def test_memory_is_bounded(mapping: str) -> None:
    async def use(_: Evaluator, attempt: Attempt) -> None:
        assert "memory" in str(await attempt(mapping))
        assert (await attempt("root = this.a"))["results"] == [{"output": "1"}]

    using(lambda: Evaluator(False, seconds=30, memory=400 << 20), use)


def test_processes_that_rest_are_ended_and_started_again() -> None:
    async def use(evaluator: Evaluator, attempt: Attempt) -> None:
        await attempt("root = 1")
        (process,) = evaluator._all
        evaluator.stop_idle()
        await process.wait()
        assert (await attempt("root = 2"))["results"] == [{"output": "2"}]
        assert {one.returncode for one in evaluator._all} == {None}

    using(lambda: Evaluator(False, processes=2, seconds=30), use)


def test_a_process_that_is_killed_is_replaced() -> None:
    async def use(evaluator: Evaluator, attempt: Attempt) -> None:
        await attempt("root = 1")
        (process,) = evaluator._all
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        assert (await attempt("root = 2"))["results"] == [{"output": "2"}]

    using(lambda: Evaluator(False, seconds=30), use)


def test_a_mapping_that_takes_long_holds_nobody_up() -> None:
    async def use(_: Evaluator, attempt: Attempt) -> None:
        endless = asyncio.create_task(attempt(ENDLESS))
        await asyncio.sleep(0)
        assert (await attempt("root = 2"))["results"] == [{"output": "2"}]
        assert not endless.done()
        endless.cancel()
        await asyncio.gather(endless, return_exceptions=True)

    using(lambda: Evaluator(False, processes=2, seconds=60), use)


def test_one_that_asks_no_more_leaves_no_process_at_work() -> None:
    async def use(evaluator: Evaluator, attempt: Attempt) -> None:
        await attempt("root = 1")
        (process,) = evaluator._all
        task = asyncio.create_task(attempt(ENDLESS))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.wait_for(process.wait(), 5)
        assert (await attempt("root = 2"))["results"] == [{"output": "2"}]

    using(lambda: Evaluator(False, seconds=30), use)


def test_more_than_may_wait_are_turned_away() -> None:
    async def use(_: Evaluator, attempt: Attempt) -> None:
        asked = [asyncio.create_task(attempt(ENDLESS)) for _ in range(4)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers].count(BusyError) == 1
        told = [answer["problem"]["text"] for answer in answers if isinstance(answer, dict)]
        assert told == ["the mapping was stopped after 0.2 seconds; give it less to do"] * 3

    using(lambda: Evaluator(False, seconds=0.2, waiting=2), use)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no alarms")
def test_a_process_whose_parent_has_died_does_not_work_for_ever() -> None:
    async def use(evaluator: Evaluator, attempt: Attempt) -> None:
        await attempt("root = 1")
        (process,) = evaluator._all
        assert process.stdin is not None
        # Nobody waits for the answer, and nobody ends the process.
        process.stdin.write(f'{{"mapping": "{ENDLESS}", "input": "{{}}"}}\n'.encode())
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 60)
        assert process.returncode == -signal.SIGALRM

    using(lambda: Evaluator(False, seconds=0.2), use)
