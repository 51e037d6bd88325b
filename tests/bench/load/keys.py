"""What many keys cost: CPU, state and memory, by keys and by kind of window.

A result for each key and window comes out; every event is counted in what comes out. Events are the
traffic lights and users of the other parts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench import report, traffic
from tests.bench.load.growth import ORIGIN, PACE, count_events
from tests.bench.peers import lines_of
from tests.bench.process_tree import Sample
from tests.bench.product import Product, product
from tests.bench.speed import LEFT_OUT, speed_of
from tests.bench.windows import jobs, sessions

EVENTS: Final = 3_000_000
FILES: Final = 10
SLIDING_EVENTS: Final = 300_000
"""Of a sliding window each event may begin a window, which then is a result."""

SESSION_EVENTS: Final = 2_100_000
USERS_EVENTS: Final = 21
"""Events of each user, of whom there are 100,000."""

MAX_CPU_S: Final = {1_000: 2.0, 100_000: 5.0, 1_000_000: 10.0}
MAX_MEMORY_MIB: Final = 2_500


@dataclass(frozen=True)
class Case:
    """What is measured.

    Attributes:
        name: of its figures.
        buffer: its windows.
        pipeline: makes a line of each window.
        events: how many.
        write: writes them into files of a directory.
        check: says what is wrong with the lines that come out; None where nothing checks them.
        max_cpu: CPU seconds for a million events, at most; None where nothing is promised.
    """

    name: str
    buffer: str
    pipeline: str
    events: int
    write: Callable[[Path], list[Path]]
    check: Callable[[list[Path], Iterable[bytes]], str]
    max_cpu: float | None = None


def keys(work: Path, master: str) -> None:
    """Measure all cases.

    Args:
        work: a directory that does not exist yet.
        master: Spark's.

    Raises:
        RuntimeError: an answer is wrong.
    """
    report.heading(f"keys: windows of 10 s, {PACE:,} events in a second of event time, {master}")
    for case in _cases():
        _measure(case, work, master)
        shutil.rmtree(work)


def _cases() -> Iterable[Case]:
    tumbling = jobs.lights("tumbling_window", size="10s", end_of_input="flush")
    for count, max_cpu in MAX_CPU_S.items():
        write = partial(_write_lights, EVENTS, count)
        name = f"{count:,} keys"
        yield Case(name, tumbling, jobs.COUNTED_LIGHT, EVENTS, write, _check_lights, max_cpu)
    sliding = jobs.lights("sliding_window", size="10s", mode="forward", end_of_input="flush")
    write = partial(_write_lights, SLIDING_EVENTS, 100_000)
    name = "sliding, 100,000 keys"
    yield Case(name, sliding, jobs.COUNTED_LIGHT, SLIDING_EVENTS, write, _check_some)
    write_users = partial(
        sessions.write, events=SESSION_EVENTS, files=FILES, users_events=USERS_EVENTS
    )
    session = jobs.sessions(sessions.GAP_MS)
    name = "sessions, 100,000 users"
    yield Case(name, session, jobs.SESSION, SESSION_EVENTS, write_users, sessions.differences)


def _write_lights(events: int, lights: int, directory: Path) -> list[Path]:
    return traffic.write(directory, events, FILES, ORIGIN, PACE, lights)


def _check_lights(paths: list[Path], lines: Iterable[bytes]) -> str:
    passengers = sum(int(line[-3:-2]) for line in lines_of(paths))
    return count_events(EVENTS, passengers, lines)


def _check_some(paths: list[Path], lines: Iterable[bytes]) -> str:
    return "" if any(lines) else "nothing came out"


def _measure(case: Case, work: Path, master: str) -> None:
    paths = case.write(work / "files")
    out = work / "run" / "out.jsonl"
    files = work / "files" / "*.jsonl"
    text = jobs.from_files(files, case.buffer, case.pipeline, out, master) + "  shards: 2\n"
    with product(text, work / "run", shared=True) as running:
        running.wait(150)
    last = running.delivered[-1]
    if last.messages != case.events or last.dropped:
        raise RuntimeError(f"{case.name}: not all events were taken{running.course()}")
    lines = sum(1 for _ in out.open("rb"))
    wrong = case.check(paths, lines_of([out]))
    if wrong:
        raise RuntimeError(f"{case.name}: the answers are wrong: {wrong}{running.course()}")
    _report(case, running, lines)


def _cpu_per_million(running: Product) -> float:
    """Return CPU seconds of the process tree for a million events, after the start."""
    filled = running.filled()
    if len(filled) > LEFT_OUT:
        return speed_of(running).cpu_per_million
    # The first micro-batch is small: Python and Java are warm in a part of the rest.
    tree, last = running.tree, running.delivered[-1]
    cpu = tree.cpu_at(last.at) - tree.cpu_at(filled[0].at)
    return cpu / (last.messages - filled[0].messages) * 1e6


def _report(case: Case, running: Product, lines: int) -> None:
    cpu, name = _cpu_per_million(running), case.name
    report.figure(f"{name}: CPU for a million events", cpu, "s", most=case.max_cpu)
    share = lines / case.events
    report.figure(f"{name}: CPU for a result", cpu / share, "µs")
    held = max((sum(one.held) for one in running.delivered), default=0)
    state = max(size for _, size in running.state)
    report.figure(f"{name}: checkpoint for an event held", state / max(held, 1), "B")
    peak: Sample = max(running.tree.samples, key=lambda sample: sample.memory)
    memory = peak.memory / 2**20
    report.figure(f"{name}: memory of all processes", memory, "MiB", most=MAX_MEMORY_MIB)
    kinds = ", ".join(f"{kind} {size >> 20:,}" for kind, size in peak.rss.items() if size >> 20)
    report.note(f"{lines:,} results; MiB at the peak, shared pages once: {kinds}")
