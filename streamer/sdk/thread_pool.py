"""Work on several messages at once, in threads: for what mostly waits, such as requests.

Neither an `Execution` nor a built component is made for several threads. So each thread has a
worker of its own, with components built for it alone (`context.isolated()`), and each piece of work
gets an execution of its own. Its log lines and counts join those of the execution around it when
all is done, in the order of the work: they are the same, whichever thread was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from streamer.core.execution import Execution

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Worker = TypeVar("Worker")
Work = TypeVar("Work")
Result = TypeVar("Result")

MAX_THREADS: Final = 256
"""Threads that one component may have at once, where its config sets no bound of its own."""


class _ChildExecution:
    """A run for one piece of work, with its log."""

    def __init__(self, parent: Execution) -> None:
        self._parent = parent
        self._records: list[Callable[[], None]] = []
        self.ex = Execution(
            parent.now,
            self._log,
            self._count,
            strict=parent.strict,
            elapsed=parent.elapsed,
            sleep=parent.sleep,
            report_wait=parent.report_wait,
        )
        self.ex.counters = parent.counters
        self.ex.counter_bounds = parent.counter_bounds
        self.ex.answers = parent.answers
        self.ex.origins = parent.origins
        self.ex.micro_batch = parent.micro_batch
        self.ex.wait_budget = parent.wait_budget
        self.ex.failures = parent.failures

    def _log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        self._records.append(lambda: self._parent.log(level, text, fields))

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self._records.append(lambda: self._parent.count(name, by, **labels))

    def merge_into_parent(self) -> None:
        """Replay this part's log lines, counters and stats into the parent execution."""
        for replay in self._records:
            replay()
        self._parent.custom_metrics.merge(self.ex.custom_metrics)
        for key, tally in self.ex.component_stats.items():
            self._parent.stats_of(key).add(tally)
        self._parent.rejected += self.ex.rejected


class ComponentPool(Generic[Worker]):
    """A pool of threads, each with its own instances; both are made when they are needed first."""

    def __init__(self, make: Callable[[], Worker], max_threads: int = 0) -> None:
        """Begin with no thread.

        Args:
            make: makes what one thread works with; called in the thread that calls `map`.
            max_threads: how many pieces of work are done at once; 0 or less for `MAX_THREADS`.
        """
        self._make = make
        self._max_threads = max_threads if max_threads > 0 else MAX_THREADS
        self._workers: list[Worker] = []
        self._pool: ThreadPoolExecutor | None = None

    def map(
        self,
        work: Callable[[Worker, Work, Execution], Result],
        pieces: Sequence[Work],
        ex: Execution,
    ) -> list[Result]:
        """Return what each piece of work makes, in order; return when all are done.

        Args:
            work: takes a worker that no other thread uses meanwhile, a piece, and the piece's
                execution.
            pieces: what there is to do.
            ex: the run around it.

        Raises:
            Exception: what the first piece that failed has raised, once all are done.
        """
        threads = min(len(pieces), self._max_threads)
        while len(self._workers) < threads:
            self._workers.append(self._make())
        if threads <= 1:
            return [work(self._workers[0], piece, ex) for piece in pieces]
        children = [_ChildExecution(ex) for _ in pieces]
        waiting: SimpleQueue[int] = SimpleQueue()
        for number in range(len(pieces)):
            waiting.put(number)
        results: dict[int, Result] = {}
        failed: dict[int, BaseException] = {}

        def follow(worker: Worker) -> None:
            with suppress(Empty):
                while True:
                    number = waiting.get_nowait()
                    try:
                        results[number] = work(worker, pieces[number], children[number].ex)
                    except BaseException as error:  # noqa: BLE001 - raised again by the caller
                        failed[number] = error

        if self._pool is None:
            # Slow to import, and few configs need it.
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._max_threads, thread_name_prefix="component")
        for done in [self._pool.submit(follow, worker) for worker in self._workers[:threads]]:
            done.result()
        for part in children:
            part.merge_into_parent()
        if failed:
            raise failed[min(failed)]
        return [results[number] for number in range(len(pieces))]
