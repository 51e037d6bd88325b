"""CPU seconds and memory of a process and all that it started, from /proc.

A process's times in /proc include those of the children it has waited for, so that the thousands of
short-lived ones that Spark forks are in the figures, however short they lived.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """What one line of /proc/<pid>/stat says; `cpu` in seconds, children's included."""

    pid: int
    parent: int
    began: int
    name: str
    cpu: float
    rss: int


@dataclass(frozen=True)
class Sample:
    """The tree at one moment.

    Attributes:
        at: Unix time.
        cpu: CPU seconds since the tree's beginning.
        rss: bytes, by kind of process: `driver`, `java`, `python` (Spark's workers), others.
    """

    at: float
    cpu: float
    rss: Counter[str] = field(default_factory=Counter)

    @property
    def memory(self) -> int:
        """Bytes of all processes; pages they share count for each of them."""
        return sum(self.rss.values())


def _read(pid: str) -> Process | None:
    try:
        text = Path("/proc", pid, "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    before, _, after = text.rpartition(")")
    f = after.split()
    cpu = sum(map(int, f[11:15])) / TICK
    return Process(
        int(pid), int(f[1]), int(f[19]), before.partition("(")[2], cpu, int(f[21]) * PAGE
    )


class Tree:
    """A process and its descendants, sampled by a thread of its own until `stop`."""

    def __init__(self, root: int, every: float = 0.2) -> None:
        """Watch the process `root`, which is running, every so many seconds."""
        self._root = root
        self._every = every
        self._known: dict[int, Process] = {}
        self._gone = 0.0
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
        every = {p.pid: p for p in map(_read, filter(str.isdigit, os.listdir("/proc"))) if p}
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
                self._gone += was.cpu
        self._known = {pid: every[pid] for pid in members}
        rss: Counter[str] = Counter()
        for process in self._known.values():
            rss["driver" if process.pid == self._root else process.name] += process.rss
        cpu = self._gone + sum(p.cpu for p in self._known.values())
        self.samples.append(Sample(at, cpu, rss))

    def cpu_at(self, at: float) -> float:
        """CPU seconds at a moment, between two samples."""
        samples = self.samples
        i = bisect_left(samples, at, key=lambda sample: sample.at)
        if i == 0 or i == len(samples):
            return samples[min(i, len(samples) - 1)].cpu
        a, b = samples[i - 1], samples[i]
        return a.cpu + (b.cpu - a.cpu) * (at - a.at) / (b.at - a.at)

    def between(self, first: float, last: float) -> list[Sample]:
        """The samples of a stretch of time."""
        return [sample for sample in self.samples if first <= sample.at <= last]
