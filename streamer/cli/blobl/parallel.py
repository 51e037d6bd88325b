"""Documents mapped by several processes, their results in the order of the documents.

Threads of one Python take turns, so `--threads` are processes. They are forked where that is
possible, once the mapping is compiled and before the first thread starts.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from streamer.bloblang import Mapping
from streamer.cli.blobl.output import Printer
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.tools.playground.apply import DocumentStyle, PrintedResults, apply_to_all

# How many documents go to a process at most at a time, and how many such tasks wait for each.
_DOCUMENTS_PER_TASK: Final = 1024
_TASKS_AHEAD_PER_PROCESS: Final = 3

_job: tuple[Mapping, DocumentStyle, Execution] | None = None


def run_in_processes(
    mapping: Mapping,
    batches: Iterable[list[bytes]],
    style: DocumentStyle,
    processes: int,
    printer: Printer,
) -> None:
    """Print what a mapping makes of documents, in their order.

    Args:
        mapping: the mapping.
        batches: the documents, as they arrive.
        style: how they are taken and printed.
        processes: how many.
        printer: prints.

    Raises:
        StreamerError: a process died, or `found` raised it.
        BrokenPipeError: nobody reads the results any more.
    """
    method = "fork" if sys.platform == "linux" else "spawn"
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context(method), _start_process, (mapping, style)
    )
    waiting: queue.Queue[Future[PrintedResults] | None] = queue.Queue(
        processes * _TASKS_AHEAD_PER_PROCESS
    )
    results = _Results(waiting, printer)
    try:
        # With the first task all processes start, and they must before there are threads.
        waiting.put(pool.submit(_apply, []))
        try:
            results.start()
            for documents in _split_batches(batches):
                # Waits while the processes are behind, so that memory is bounded.
                waiting.put(pool.submit(_apply, documents))
                if results.failure is not None:
                    break
        finally:
            waiting.put(None)
            results.join()
            # All results are there. Python's own end would meet the pool's while that goes on, and
            # then complains of a pipe that has been closed.
            pool.shutdown(wait=True, cancel_futures=True)
        if results.failure is not None:
            raise results.failure
    except BrokenProcessPool:
        # Told by a task's result, or by the next task that is given to the pool.
        raise StreamerError(
            "a process that applied the mapping died, probably for lack of memory; "
            "use fewer --threads"
        ) from None


class _Results(threading.Thread):
    """Prints results in the order of their tasks, while the main thread waits for input.

    Attributes:
        failure: what went wrong; nothing is printed after it.
    """

    def __init__(
        self, waiting: queue.Queue[Future[PrintedResults] | None], printer: Printer
    ) -> None:
        super().__init__(daemon=True)
        self._waiting = waiting
        self._printer = printer
        self.failure: Exception | None = None

    def run(self) -> None:
        """Print until there are no more tasks."""
        while (future := self._waiting.get()) is not None:
            # After a failure tasks are only taken, so that nobody waits for room.
            if self.failure is None:
                try:
                    self._printer.print(future.result())
                except Exception as e:
                    self.failure = e


def _start_process(mapping: Mapping, style: DocumentStyle) -> None:
    global _job
    # Ctrl-C reaches all processes of a terminal; the one that reads ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _job = (mapping, style, Execution(time.time_ns))


def _exit_with_parent() -> None:
    """End this process when the one that reads was killed: nothing else would tell it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _apply(documents: list[bytes]) -> PrintedResults:
    assert _job is not None
    mapping, style, ex = _job
    return apply_to_all(mapping, documents, style, ex)


def _split_batches(batches: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    for documents in batches:
        for start in range(0, len(documents), _DOCUMENTS_PER_TASK):
            yield documents[start : start + _DOCUMENTS_PER_TASK]
