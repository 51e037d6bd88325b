"""Work on several messages at once, in threads: for what mostly waits, such as requests.

Neither a run (`Execution`) nor a built component is made for several threads. So each thread has a
lane of its own: components built for it alone (`context.apart()`), and each piece of work gets a
run of its own, whose log lines and counts join those of the run around it when all is done, in the
order of the work. What is said and counted is the same, whichever thread was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from streamer.message import Execution

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Lane = TypeVar("Lane")
Work = TypeVar("Work")
Made = TypeVar("Made")

MOST: Final = 256
"""Threads that one component may have at once, where its config sets no bound of its own."""


class _Part:
    """A run for one piece of work, and what was said in it."""

    def __init__(self, around: Execution) -> None:
        self._around = around
        self._said: list[Callable[[], None]] = []
        self.ex = Execution(
            around.now,
            self._log,
            self._count,
            strict=around.strict,
            elapsed=around.elapsed,
            sleep=around.sleep,
            tell=around.tell,
        )
        self.ex.counters = around.counters
        self.ex.counter_bounds = around.counter_bounds
        self.ex.answers = around.answers
        self.ex.origins = around.origins
        self.ex.micro_batch = around.micro_batch
        self.ex.wait_budget = around.wait_budget

    def _log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        self._said.append(lambda: self._around.log(level, text, fields))

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self._said.append(lambda: self._around.count(name, by, **labels))

    def join(self) -> None:
        """Say in the run around it what was said."""
        for say in self._said:
            say()
        self._around.figures.join(self.ex.figures)
        for key, tally in self.ex.tallies.items():
            self._around.tally(key).add(tally)
        self._around.rejected += self.ex.rejected


class Lanes(Generic[Lane]):
    """Threads, each with a lane of its own; both are made when they are needed first."""

    def __init__(self, make: Callable[[], Lane], most: int = 0) -> None:
        """Begin with no lane.

        Args:
            make: makes what one thread works with; called in the thread that calls `map`.
            most: how many pieces of work are done at once; 0 or less for `MOST`.
        """
        self._make = make
        self._most = most if most > 0 else MOST
        self._lanes: list[Lane] = []
        self._pool: ThreadPoolExecutor | None = None

    def map(
        self,
        work: Callable[[Lane, Work, Execution], Made],
        pieces: Sequence[Work],
        ex: Execution,
    ) -> list[Made]:
        """Return what each piece of work makes, in order; return when all are done.

        Args:
            work: is given a lane that nobody else uses meanwhile, a piece, and the piece's run.
            pieces: what there is to do.
            ex: the run around it.

        Raises:
            Exception: what the first piece that failed has raised, once all are done.
        """
        wanted = min(len(pieces), self._most)
        while len(self._lanes) < wanted:
            self._lanes.append(self._make())
        if wanted <= 1:
            return [work(self._lanes[0], piece, ex) for piece in pieces]
        parts = [_Part(ex) for _ in pieces]
        waiting: SimpleQueue[int] = SimpleQueue()
        for number in range(len(pieces)):
            waiting.put(number)
        made: dict[int, Made] = {}
        failed: dict[int, BaseException] = {}

        def follow(lane: Lane) -> None:
            with suppress(Empty):
                while True:
                    number = waiting.get_nowait()
                    try:
                        made[number] = work(lane, pieces[number], parts[number].ex)
                    except BaseException as error:  # noqa: BLE001 - raised again by the caller
                        failed[number] = error

        if self._pool is None:
            # Slow to import, and few configs need it.
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="lane")
        for done in [self._pool.submit(follow, lane) for lane in self._lanes[:wanted]]:
            done.result()
        for part in parts:
            part.join()
        if failed:
            raise failed[min(failed)]
        return [made[number] for number in range(len(pieces))]
