"""What a service holds of its machine, seen from outside: processes, threads, ports and memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.processes import descendants

_PROC = Path("/proc")


@dataclass(frozen=True)
class Vitals:
    """What a process and all that it has started hold.

    Attributes:
        processes: how many there are.
        threads: of the process itself.
        queries: threads of Spark that run a query.
        ports: TCP ports that are listened on.
        memory: MB, pages that are shared counted once.
    """

    processes: int
    threads: int
    queries: int
    ports: int
    memory: float


def vitals(root: int) -> Vitals:
    """Look at a process."""
    ours = descendants(root)
    threads = [name for pid in ours for name in _threads(pid)]
    return Vitals(
        processes=len(ours),
        threads=len(_threads(root)),
        queries=sum(name.startswith("stream executi") for name in threads),
        ports=len(_listening() & {inode for pid in ours for inode in _sockets(pid)}),
        memory=sum(map(memory, ours)),
    )


def _threads(pid: int) -> list[str]:
    found = []
    for path in (_PROC / str(pid) / "task").glob("*/comm"):
        try:
            found.append(path.read_text().strip())
        except OSError:
            continue
    return found


def _sockets(pid: int) -> set[str]:
    found = set()
    for path in (_PROC / str(pid) / "fd").glob("*"):
        try:
            target = os.readlink(path)
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def _listening() -> set[str]:
    """Return the inodes of sockets that listen."""
    found = set()
    for name in ("tcp", "tcp6"):
        for line in (_PROC / "net" / name).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found.add(fields[9])
    return found


def memory(pid: int) -> float:
    """Return the memory of one process, MB; pages that are shared are counted by their share."""
    try:
        text = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next((int(x.split()[1]) / 1024 for x in text.splitlines() if x.startswith("Pss:")), 0.0)
