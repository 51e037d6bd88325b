"""Processes of a backfill: each has the job, and runs one task after another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final, TypeVar

from streamer.bloblang import restore_inputs
from streamer.core.errors import StreamerError
from streamer.core.limits import set_limits
from streamer.sdk.lookup_table import use_local_tables
from streamer.service.backfill.scan import BackfillJob

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_TASKS_AHEAD: Final = 1
_POLL_S: Final = 0.2

_job: BackfillJob | None = None


class WorkerPool:
    """Some processes that run functions of the job and of an item."""

    def __init__(self, job: BackfillJob, processes: int) -> None:
        """Start processes as they are needed.

        Args:
            job: what each process has.
            processes: how many there are.
        """
        self._processes = processes
        # A fork would share the connections of inputs and the locks of threads.
        self._pool = ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), _start_process, (job,)
        )

    def run(
        self,
        function: Callable[[BackfillJob, Item], Outcome],
        items: Iterable[Item],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[Item, Outcome]]:
        """Run a function for each item; give item and outcome as they come, in any order.

        Args:
            function: of a module.
            items: what it is run for; they are begun in their order.
            should_stop: no more are begun once it is true.

        Raises:
            StreamerError: the function did, or a process died.
        """
        left = iter(items)
        running: dict[Future[Outcome], Item] = {}
        try:
            while True:
                while not should_stop() and len(running) < self._processes + _TASKS_AHEAD:
                    item = next(left, _NO_ITEM)
                    if item is _NO_ITEM:
                        break
                    running[self._pool.submit(_run, function, item)] = item  # type: ignore[assignment]
                if not running:
                    return
                done, _ = wait(running, _POLL_S, FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise StreamerError(
                "a process of the backfill died, probably for lack of memory; what is finished is "
                "kept: run the same command again, with fewer --processes"
            ) from None

    def close(self) -> None:
        """End the processes; what they run is finished first."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class InlinePool:
    """Runs functions in this process, one after the other, in the place of a `WorkerPool`."""

    def __init__(self, job: BackfillJob) -> None:
        """Take the job."""
        self._job = job

    def run(
        self,
        function: Callable[[BackfillJob, Item], Outcome],
        items: Iterable[Item],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[Item, Outcome]]:
        """Run a function for each item; see `WorkerPool.run`."""
        plan = self._job.plan
        with use_local_tables(plan.resources, plan.context()):
            for item in items:
                if should_stop():
                    return
                yield item, function(self._job, item)

    def close(self) -> None:
        """Nothing is left to end."""


def make_pool(job: BackfillJob, processes: int) -> WorkerPool | InlinePool:
    """Return a pool of so many processes; one is this process itself."""
    if processes == 1:
        restore_inputs(job.plan.captured_inputs)
        return InlinePool(job)
    return WorkerPool(job, processes)


_NO_ITEM: Final = object()


def _start_process(job: BackfillJob) -> None:
    global _job
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    set_limits(job.plan.limits)
    restore_inputs(job.plan.captured_inputs)
    _job = job


def _exit_with_parent() -> None:
    """End this process when the one that gives it tasks was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(function: Callable[[BackfillJob, Any], Outcome], item: Any) -> Outcome:
    assert _job is not None
    plan = _job.plan
    try:
        with use_local_tables(plan.resources, plan.context()):
            return function(_job, item)
    except StreamerError as e:
        # Errors of some kinds do not survive the way to another process.
        raise StreamerError(str(e)) from None
