"""CPU seconds and memory of a process and all that it started, from /proc.

A process's times in /proc include those of the children it has waited for, so that the thousands of
short-lived ones that Spark forks are in the figures, however short they lived.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """One line of /proc/<pid>/stat: CPU seconds of its own, and of children that ended."""

    pid: int
    parent: int
    began: int
    name: str
    cpu: float
    ended: float
    rss: int


@dataclass(frozen=True)
class Sample:
    """The tree at one moment.

    Attributes:
        at: Unix time.
        cpu: CPU seconds since the tree's beginning.
        rss: bytes, by kind of process: `driver` (the root), `java`, `python` (Spark's workers),
            others.
        cpu_of: CPU seconds by the same kinds; `ended` is of children that were waited for.
    """

    at: float
    cpu: float
    rss: Counter[str] = field(default_factory=Counter)
    cpu_of: dict[str, float] = field(default_factory=dict)

    @property
    def memory(self) -> int:
        """Bytes of all processes; pages they share count for each of them."""
        return sum(self.rss.values())


def read_stat(path: Path) -> Process | None:
    """Read a file `stat` of a process or a thread; None when it has ended."""
    try:
        text = path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    before, _, after = text.rpartition(")")
    f = after.split()
    own, ended = (sum(map(int, f[at : at + 2])) / TICK for at in (11, 13))
    pid, _, name = before.partition(" (")
    return Process(int(pid), int(f[1]), int(f[19]), name, own, ended, int(f[21]) * PAGE)


def _proportional(process: Process) -> int:
    """Return the bytes of a process, where a page that n of them share counts 1/n for each."""
    try:
        text = Path("/proc", str(process.pid), "smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    found = text.partition("\nPss:")[2].split(maxsplit=1)
    return int(found[0]) << 10 if found else 0  # it has ended, and its parent has not heard of it


class Tree:
    """A process and its descendants, sampled by a thread of its own until `stop`."""

    def __init__(self, root: int, every: float = 0.2, *, shared: bool = False) -> None:
        """Watch the process `root`, which is running, every so many seconds.

        Args:
            root: its number.
            every: seconds between two samples.
            shared: pages that processes share count once, not for each; it takes longer to see.
        """
        self._root = root
        self._every = every
        self._shared = shared
        self._known: dict[int, Process] = {}
        self._gone: defaultdict[str, float] = defaultdict(float)
        self.samples: list[Sample] = []
        self._over = threading.Event()
        self._take()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="tree")
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            self._take()

    def stop(self) -> None:
        """Take no more samples."""
        self._over.set()
        self._thread.join()

    def _take(self) -> None:
        at = time.time()
        paths = (Path("/proc", pid, "stat") for pid in os.listdir("/proc") if pid.isdigit())
        every = {p.pid: p for p in map(read_stat, paths) if p}
        members = {self._root} & every.keys()
        # One that was known stays, though its parent may have ended.
        members |= {
            pid
            for pid, was in self._known.items()
            if pid in every and every[pid].began == was.began
        }
        children: dict[int, list[int]] = {}
        for process in every.values():
            children.setdefault(process.parent, []).append(process.pid)
        todo = list(members)
        while todo:
            for child in children.get(todo.pop(), ()):
                if child not in members:
                    members.add(child)
                    todo.append(child)
        for pid, was in self._known.items():
            # A parent that lives has waited for it and has its times; else they are kept here.
            if pid not in members and was.parent not in members:
                self._gone[self._kind(was)] += was.cpu
                self._gone["ended"] += was.ended
        self._known = {pid: every[pid] for pid in members}
        rss: Counter[str] = Counter()
        cpu_of = self._gone.copy()
        for process in self._known.values():
            kind = self._kind(process)
            rss[kind] += _proportional(process) if self._shared else process.rss
            cpu_of[kind] += process.cpu
            cpu_of["ended"] += process.ended
        self.samples.append(Sample(at, sum(cpu_of.values()), rss, dict(cpu_of)))

    def _kind(self, process: Process) -> str:
        return "driver" if process.pid == self._root else process.name

    def cpu_at(self, at: float) -> float:
        """CPU seconds at a moment, between two samples."""
        return sum(self.cpu_of_at(at).values())

    def cpu_of_at(self, at: float) -> dict[str, float]:
        """CPU seconds by kind of process at a moment, between two samples."""
        samples = self.samples
        i = bisect_left(samples, at, key=lambda sample: sample.at)
        if i == 0 or i == len(samples):
            return samples[min(i, len(samples) - 1)].cpu_of
        a, b = samples[i - 1], samples[i]
        share = (at - a.at) / (b.at - a.at)
        # A kind that is new, or of which none is left, began or ended at nothing.
        return {
            kind: (1 - share) * a.cpu_of.get(kind, 0.0) + share * b.cpu_of.get(kind, 0.0)
            for kind in a.cpu_of.keys() | b.cpu_of.keys()
        }

    def between(self, first: float, last: float) -> list[Sample]:
        """The samples of a stretch of time."""
        return [sample for sample in self.samples if first <= sample.at <= last]
