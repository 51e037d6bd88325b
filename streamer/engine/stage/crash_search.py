"""Find the messages that end a worker, and go past those that were found.

The driver asks for a search when workers have died at a micro-batch
(`streamer.spark.query.worker_crashes`). Then each task, before it processes a chunk of its input,
has a forked process run the chunk's messages through the processors: one after the other, with a
mark before each. When that ends, the mark says which message it was, and another process goes on
behind it. Nothing is sent there. A task that has found some fails with their list; the driver keeps
it in the checkpoint and tries the micro-batch again, in which those messages are marked as failed
where they would have crashed.
"""

from __future__ import annotations

import base64
import copy
import faulthandler
import json
import mmap
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from streamer.core.execution import Execution
from streamer.core.limits import current_limits
from streamer.core.message import Batch
from streamer.core.time_limit import OVERDUE_EXIT_CODE
from streamer.engine.report.component_errors import ComponentFailedError, ComponentFailure
from streamer.sdk.processing import Processor, run
from streamer.sdk.processing.crashes import MARK_SIZE, CallGuard, Crash, CrashMark, fail_crashed

Item = TypeVar("Item")

_MARK: Final = "streamer-crashes "
_MARK_PATTERN: Final = re.compile(re.escape(_MARK) + r"([A-Za-z0-9+/=]+)")
_MAX_CRASHES_PER_TASK: Final = 100
"""Crashes that one task looks for before it reports them."""

_SAMPLE_BYTES: Final = 100
_EXIT_NO_MEMORY: Final = 77
_EXIT_UNCAUGHT: Final = 78
_MIN_FREE_BYTES: Final = 512 << 20
_PR_SET_PDEATHSIG: Final = 1
"""`PR_SET_PDEATHSIG` of Linux's `prctl`."""


@dataclass(frozen=True)
class CrashInstructions:
    """Instructions of the driver about crashes in a micro-batch.

    Attributes:
        search: whether tasks look for messages that end them.
        known_crashes: those that were found.
    """

    search: bool = False
    known_crashes: tuple[Crash, ...] = ()

    def to_json(self) -> str:
        """Return the instructions as JSON; empty when there are none."""
        return (
            json.dumps([self.search, self.known_crashes])
            if self.search or self.known_crashes
            else ""
        )

    @classmethod
    def from_json(cls, text: str) -> CrashInstructions:
        """Return what `text` has written."""
        search, known = json.loads(text)
        return cls(search, tuple(Crash(*crash) for crash in known))


CRASH_INSTRUCTIONS: Final[ContextVar[CrashInstructions | None]] = ContextVar(
    "CRASH_INSTRUCTIONS", default=None
)
"""What holds for the task in hand; None where no worker has died."""


class WorkerCrashesError(ComponentFailedError):
    """A task has found messages that end it.

    Attributes:
        crashes: which.
    """

    def __init__(self, crashes: Sequence[Crash]) -> None:
        self.crashes = tuple(crashes)
        first = self.crashes[0]
        body = base64.b64encode(json.dumps(self.crashes).encode()).decode()
        text = f"a message ends its worker ({first.reason}); {_MARK}{body}"
        super().__init__(ComponentFailure(text, first.label, first.path))

    def __reduce__(self) -> tuple[type[WorkerCrashesError], tuple[tuple[Crash, ...]]]:  # type: ignore[override]
        return WorkerCrashesError, (self.crashes,)


def strip_crash_data(text: str) -> str:
    """Return the text of a `WorkerCrashesError` as people read it."""
    return text.partition(f"; {_MARK}")[0]


def parse_crashes(error: str) -> tuple[Crash, ...]:
    """Return the crashes that a text of Spark's tells of."""
    match = _MARK_PATTERN.search(error)
    if match is None:
        return ()
    try:
        return tuple(Crash(*crash) for crash in json.loads(base64.b64decode(match[1])))
    except (ValueError, TypeError):
        return ()


class PieceCrashSearch:
    """Searches one piece of a micro-batch, and goes past what is known of it."""

    def __init__(self, part: str, order: CrashInstructions, first: int = 0) -> None:
        """Take a piece.

        Args:
            part: names it, the same whenever the micro-batch comes again.
            order: what the driver says.
            first: the number of its first batch.
        """
        self._part = part
        self._first = first
        self._search = order.search
        self._known_crashes: dict[tuple[str, int], list[Crash]] = {}
        for crash in order.known_crashes:
            if crash.part == part:
                self._known_crashes.setdefault((crash.stage, crash.number), []).append(crash)
        self._next: dict[str, int] = {}
        self._new_crashes: list[Crash] = []

    def raise_at_end(self, items: Iterable[Item]) -> Iterator[Item]:
        """Give what the piece holds; at its end all that was found is raised.

        Raises:
            WorkerCrashesError: messages of the piece end their process.
        """
        yield from items
        self.report()

    def run_batches(
        self,
        processors: Sequence[Processor],
        batches: Sequence[Batch],
        ex: Execution,
        stage: str,
        ordinary: Callable[[int, int], Iterable[Batch]],
    ) -> Iterator[Batch]:
        """Return what comes out of processors for some batches.

        Args:
            processors: what they go through.
            batches: those that come next.
            ex: the run.
            stage: names the list of processors.
            ordinary: runs those between two numbers of the list, of which no crash is known.
        """
        first = self._search_batches(processors, batches, ex, stage)
        if self._new_crashes:
            return
        begin = 0
        for at, batch in enumerate(batches):
            known = self._known_crashes.get((stage, first + at))
            if known is None:
                continue
            yield from ordinary(begin, at)
            begin = at + 1
            yield from _run_past_crashes(processors, batch, known, ex)
        yield from ordinary(begin, len(batches))

    def run_each_batch(
        self, processors: Sequence[Processor], batches: Sequence[Batch], ex: Execution, stage: str
    ) -> Iterator[list[Batch]]:
        """Return what comes out of processors, for each of some batches by itself.

        Args:
            processors: what they go through.
            batches: those that come next.
            ex: the run.
            stage: names the list of processors.

        Returns:
            As many as there are batches; none when messages were found, for then the task fails.
        """
        first = self._search_batches(processors, batches, ex, stage)
        if self._new_crashes:
            return
        for number, batch in enumerate(batches, first):
            known = self._known_crashes.get((stage, number))
            made = run(processors, [batch], ex)
            yield list(made if known is None else _run_past_crashes(processors, batch, known, ex))

    def report(self) -> None:
        """End the task if something was found.

        Raises:
            WorkerCrashesError: messages of the piece end their process.
        """
        if self._new_crashes:
            raise WorkerCrashesError(self._new_crashes)

    def _search_batches(
        self, processors: Sequence[Processor], batches: Sequence[Batch], ex: Execution, stage: str
    ) -> int:
        """Search some batches if that is wanted; return the number of the first."""
        first = self._next.setdefault(stage, self._first)
        self._next[stage] = first + len(batches)
        if self._search and processors and len(self._new_crashes) < _MAX_CRASHES_PER_TASK:
            self._new_crashes += self._find_crashes(processors, batches, ex, stage, first)
        return first

    def _find_crashes(
        self,
        processors: Sequence[Processor],
        batches: Sequence[Batch],
        ex: Execution,
        stage: str,
        first: int,
    ) -> Iterator[Crash]:
        memory = mmap.mmap(-1, MARK_SIZE)
        mark, at, count = CrashMark(memory), 0, 0
        while at < len(batches) and count < _MAX_CRASHES_PER_TASK:
            mark.write(-1, 0, "")
            reason = _run_in_fork(
                partial(self._run_marked, processors, batches, ex, stage, first, at, mark)
            )
            index, call, path, label = mark.read()
            if not reason or index < 0:
                break
            batch = batches[index]
            size = sum(len(message.raw) for message in batch)
            sample = ascii(batch[0].raw[:_SAMPLE_BYTES])[2:-1]
            number = first + index
            yield Crash(self._part, stage, number, path, label, call, reason, size, sample)
            at, count = index + 1, count + 1
        memory.close()

    def _run_marked(
        self,
        processors: Sequence[Processor],
        batches: Sequence[Batch],
        ex: Execution,
        stage: str,
        first: int,
        begin: int,
        mark: CrashMark,
    ) -> None:
        silent = copy.copy(ex)
        silent.log = silent.report_wait = lambda level, text, fields: None
        silent.count = lambda name, by=1, **labels: None
        silent.component_stats, silent.answers, silent.rejected = {}, {}, []
        silent.origins, silent.refusals = None, {}
        silent.sampler = silent.read_counter = silent.failures = None
        silent.calls = calls = CallGuard(mark)
        for at in range(begin, len(batches)):
            known = self._known_crashes.get((stage, first + at), ())
            if any(not crash.path for crash in known):
                continue  # None of its calls is made, nor is what they would give written.
            calls.begin(at, known)
            for made in run(processors, [batches[at]], silent):
                for message in made:
                    # What is computed when it is asked for is computed here, too.
                    _ = message.raw


def make_crash_search(part: int | str, first: int = 0) -> PieceCrashSearch | None:
    """Return what searches a piece; None where no worker has died at the micro-batch."""
    order = CRASH_INSTRUCTIONS.get()
    return None if order is None else PieceCrashSearch(str(part), order, first)


def _run_past_crashes(
    processors: Sequence[Processor], batch: Batch, known: Sequence[Crash], ex: Execution
) -> Iterator[Batch]:
    """Run a batch through processors, without the calls that end the process."""
    nowhere = next((crash for crash in known if not crash.path), None)
    if nowhere is not None:
        # Between processors, such as when what they have made is written.
        yield fail_crashed(batch, nowhere, None, ex)
        return
    careful = copy.copy(ex)
    careful.calls = calls = CallGuard()
    calls.begin(0, known)
    yield from run(processors, [batch], careful)


def _run_in_fork(work: Callable[[], None]) -> str:
    """Run something in a forked process; return how it ended, or an empty text when all is well."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = _EXIT_UNCAUGHT
        try:
            _isolate_fork(parent)
            work()
            code = 0
        except MemoryError:
            code = _EXIT_NO_MEMORY
        except Exception:
            # Of a processor it would be a mark; wherever it comes from, it ends no worker.
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    code = os.waitstatus_to_exitcode(status)
    if code == _EXIT_NO_MEMORY:
        return "it takes more memory than there is"
    if code == OVERDUE_EXIT_CODE and current_limits().time:
        return "it takes longer than limits.time allows"
    return f"exit code {code}" if code else ""


def _isolate_fork(parent: int) -> None:
    """Bound the memory of a forked process, and let it end with its parent, without a word."""
    faulthandler.disable()
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + max(_free_memory_bytes() * 3 // 4, _MIN_FREE_BYTES)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or size < hard:
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))


def _free_memory_bytes() -> int:
    """Return how much memory may be taken, bytes: of the machine, or of a container."""
    fields: Mapping[str, str] = dict(
        line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines()
    )
    free = int(fields["MemAvailable"].split()[0]) << 10
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        most = int((group / "memory.max").read_text())
        free = min(free, most - int((group / "memory.current").read_text()))
    return free


def parse_instructions(text: Any) -> CrashInstructions | None:
    """Parse the driver's instructions; None when it has given none."""
    return CrashInstructions.from_json(text) if text else None
